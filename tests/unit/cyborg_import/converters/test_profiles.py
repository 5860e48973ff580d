# SPDX-License-Identifier: Apache-2.0
"""Tests of imported device profiles."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from cyborg_lite.cyborg_import.converters.profiles import convert_profiles
from cyborg_lite.cyborg_import.notes import Notes
from cyborg_lite.cyborg_import.plan import StoredRows, Table
from cyborg_lite.cyborg_import.source_rows import SourceProfile

NOW = datetime(2026, 11, 22, tzinfo=UTC)
PROFILE = str(UUID(int=1))
OTHER_PROFILE = str(UUID(int=2))
GROUPS = '{"groups": [{"resources:PGPU": "1", "trait:CUSTOM_T4": "required"}]}'
ROW = SourceProfile(7, PROFILE, 'gpu', GROUPS, 'One card.', datetime(2024, 1, 2))


@pytest.mark.parametrize('text', ['{', '[]', '{}', '{"groups": [{"x": "1"}]}'])
def test_invalid_groups_are_refused_by_name(text: str) -> None:
    notes = Notes(NOW)
    row = replace(ROW, profile_json=text)
    assert not convert_profiles([row], StoredRows(), notes)
    (note,) = notes.items
    assert (note.table, note.uuid) == (Table.PROFILES, PROFILE)
    assert note.reason.startswith('gpu: ')


def test_name_of_stored_profile_is_refused() -> None:
    notes = Notes(NOW)
    stored = StoredRows(profile_names={'gpu': OTHER_PROFILE})
    assert not convert_profiles([ROW], stored, notes)
    assert OTHER_PROFILE in notes.items[0].reason


def test_profile_imported_before_may_have_another_name_now() -> None:
    stored = StoredRows(
        uuids={Table.PROFILES: frozenset({PROFILE})},
        profile_names={'gpu': OTHER_PROFILE},
    )
    assert list(convert_profiles([ROW], stored, Notes(NOW))) == [7]
