# SPDX-License-Identifier: Apache-2.0
"""Tests of renamed keys, resource classes and traits.

``profile_formats/*.json`` contain groups of former formats, with the present form.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from cyborg_lite.model.profiles import renames
from cyborg_lite.model.profiles.device_profiles import Group, Limits
from cyborg_lite.model.profiles.group_keys import parse_entry
from cyborg_lite.model.profiles.renames import migrate_group

_PAIRS: list[tuple[dict[str, str], dict[str, str]]] = [
    (pair['before'], pair['after'])
    for file in sorted(Path(__file__).with_name('profile_formats').glob('*.json'))
    for pair in json.loads(file.read_text())
]


@pytest.mark.parametrize(('before', 'after'), _PAIRS)
def test_migrate_group_returns_present_names(
    before: Mapping[str, str], after: Mapping[str, str]
) -> None:
    migration = migrate_group(before)
    assert (migration.group, migration.problem) == (after, '')
    assert migration.changes
    assert migrate_group(after).group == after
    assert not migrate_group(after).changes
    for key, value in after.items():
        assert parse_entry('group', key, value, Limits()) == (key, value)


@pytest.mark.parametrize(
    ('group', 'problem'),
    [
        ({'resources:FPGA': '1', 'resources:CUSTOM_ACCELERATOR_FPGA': '1'}, 'both'),
        ({'resources:CUSTOM_ACCELERATOR_FPGA': '1', 'resources:FPGA': '1'}, 'both'),
        ({'resources:PGPU': '1', 'trait:CUSTOM_GPU_NVIDIA': 'required'}, 'no present'),
    ],
)
def test_migrate_group_ambiguous_is_unchanged(
    group: dict[str, str], problem: str
) -> None:
    migration = migrate_group(group)
    assert problem in migration.problem
    assert (migration.group, migration.changes) == (group, ())


def test_group_of_old_arq_is_read_with_former_key() -> None:
    group = Group.parse({'resources:FPGA': '1', 'accel:function_uuid': '3AFB'})
    assert group.properties == {'function_id': '3AFB'}
    assert group.requests_bitstream


def test_former_trait_parts_select_each_renamed_trait() -> None:
    traits = [
        key.removeprefix('trait:')
        for before, _after in _PAIRS
        for key in before
        if key.startswith('trait:')
    ]
    renamed = [name for name in traits if renames.rename_trait(name) != name]
    assert renamed
    for name in renamed:
        assert any(part in name for part in renames.FORMER_TRAIT_PARTS)
