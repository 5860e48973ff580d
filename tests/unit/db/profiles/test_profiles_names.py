# SPDX-License-Identifier: Apache-2.0
"""Changes of device profiles, and former names that still identify them."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from cyborg_lite.db.arqs import arqs
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.profiles import (
    DeviceProfileDisabled,
    DeviceProfileExists,
    DeviceProfileNotFound,
)
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.queries import Query
from tests.support.sql_statements import statements, writes

GROUPS = ({'resources:PGPU': '2'},)


def build_profile(name: str) -> DeviceProfile:
    moment = datetime.now(UTC)
    return DeviceProfile(str(uuid4()), name, 'old', GROUPS, created_at=moment)


def create(database: Database, name: str) -> DeviceProfile:
    return database.write(profiles.create_profile, build_profile(name))


def change(database: Database, profile: DeviceProfile, **values: Any) -> DeviceProfile:
    profile_change = ProfileChange(fields=tuple(values), **values)
    return database.write(profiles.update_profile, profile.uuid, profile_change)


def find_uuids_by_name(database: Database, *names: str) -> list[str]:
    """Return the uuids of the profiles with these current or former names."""
    query = Query(filters={'name': names})
    return [profile.uuid for profile in database.read(profiles.list_profiles, query)]


def test_update_profile_changes_given_fields_only(database: Database) -> None:
    profile = create(database, 'a')
    changed = change(database, profile, description=None, enabled=False)
    assert changed.updated_at is not None
    expected = replace(profile, description=None, enabled=False, generation=1)
    assert replace(changed, updated_at=None) == expected
    assert database.read(profiles.list_profiles, Query()) == (changed,)


def test_update_profile_keeps_groups_of_existing_arqs(database: Database) -> None:
    profile = create(database, 'a')
    before = database.write(arqs.create_arqs, 'a', None)
    change(database, profile, groups=({'resources:FPGA': '1'},), name='b')
    arqs_after = database.read(arqs.list_arqs, Query(), Scope(project_id=None))
    assert [arq.device_profile_group for arq in arqs_after] == [GROUPS[0]] * 2
    assert {arq.device_profile_name for arq in arqs_after} == {'a'}
    assert [arq.uuid for arq in arqs_after] == [arq.uuid for arq in before]
    (after,) = database.write(arqs.create_arqs, 'b', None)
    assert after.device_profile_group == {'resources:FPGA': '1'}


def test_list_profiles_finds_profile_by_former_names(database: Database) -> None:
    profile = create(database, 'a')
    second = create(database, 'z')
    for name in ('b', 'c'):
        change(database, profile, name=name)
    for name in ('a', 'b', 'c'):
        assert find_uuids_by_name(database, name) == [profile.uuid]
        assert len(database.write(arqs.create_arqs, name, None)) == 2
    assert find_uuids_by_name(database, 'a', 'b', 'c', 'z') == [
        profile.uuid,
        second.uuid,
    ]


def test_former_name_can_be_reused_by_profile_only(database: Database) -> None:
    profile, second = create(database, 'a'), create(database, 'z')
    change(database, profile, name='b')
    with pytest.raises(DeviceProfileExists, match='Device profile a already exists'):
        create(database, 'a')
    with pytest.raises(DeviceProfileExists, match='Device profile a already exists'):
        change(database, second, name='a')
    assert change(database, profile, name='a').name == 'a'
    assert (
        find_uuids_by_name(database, 'b')
        == find_uuids_by_name(database, 'a')
        == [profile.uuid]
    )
    with pytest.raises(DeviceProfileExists):
        create(database, 'b')


def test_rename_profile_to_existing_name_changes_nothing(database: Database) -> None:
    profile = create(database, 'a')
    create(database, 'z')
    with pytest.raises(DeviceProfileExists, match='Device profile z already exists'):
        change(database, profile, name='z', enabled=False)
    assert database.read(profiles.list_profiles, Query())[0] == profile


def test_create_arqs_current_name_precedes_former_name(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two concurrent transactions can write this; the test disables the check."""
    profile = create(database, 'a')
    change(database, profile, name='b')
    original = profiles.insert_unless_taken
    monkeypatch.setattr(
        profiles,
        'insert_unless_taken',
        lambda row: original({**row, 'name': 'x'}),
    )
    second = create(database, 'a')
    monkeypatch.setattr(profiles, 'rename_profile', lambda *_: None)
    change(database, second, name='a')
    assert find_uuids_by_name(database, 'a') == [second.uuid]
    created = database.write(arqs.create_arqs, 'a', None)
    assert {arq.device_profile_name for arq in created} == {'a'}  # not b


def test_delete_profile_deletes_former_names(database: Database) -> None:
    profile = create(database, 'a')
    change(database, profile, name='b')
    with pytest.raises(DeviceProfileNotFound):
        database.write(profiles.delete_profiles, ['a'])
    database.write(profiles.delete_profiles, ['b'])
    assert find_uuids_by_name(database, 'a') == []
    assert create(database, 'a').name == 'a'


def test_update_profile_unknown_raises(database: Database) -> None:
    with pytest.raises(DeviceProfileNotFound):
        change(database, build_profile('a'), enabled=False)


def test_create_arqs_disabled_profile_raises(database: Database) -> None:
    profile = create(database, 'a')
    before = database.write(arqs.create_arqs, 'a', None)
    change(database, profile, enabled=False)
    with pytest.raises(DeviceProfileDisabled, match='Device profile a is disabled'):
        database.write(arqs.create_arqs, 'a', None)
    arqs_after = database.read(arqs.list_arqs, Query(), Scope(project_id=None))
    assert [arq.uuid for arq in arqs_after] == [arq.uuid for arq in before]
    change(database, profile, enabled=True)
    assert len(database.write(arqs.create_arqs, 'a', None)) == 2


def test_create_profiles_creates_all_or_none(database: Database) -> None:
    created = database.write(
        profiles.create_profiles, [build_profile('a'), build_profile('b')]
    )
    assert database.read(profiles.list_profiles, Query()) == created
    with pytest.raises(DeviceProfileExists, match='Device profile a already'):
        database.write(
            profiles.create_profiles, [build_profile('c'), build_profile('a')]
        )
    with pytest.raises(DeviceProfileExists, match='Device profile d already'):
        database.write(
            profiles.create_profiles, [build_profile('d'), build_profile('d')]
        )
    assert database.read(profiles.list_profiles, Query()) == created


@pytest.mark.parametrize('viewer', [None, 'p', 'q'])
def test_list_profiles_by_name_equals_page(
    database: Database, viewer: str | None
) -> None:
    for name in ('a', 'b', 'c'):
        create(database, name)
    hidden = change(database, create(database, 'd'), is_public=False, enabled=False)
    database.write(profiles.grant_access, hidden.uuid, ['p'], None)
    query = Query(filters={'name': ('d', 'a', 'b', 'x', 'a\0')})
    page = replace(query, limit=9)
    by_name = database.read(profiles.list_profiles, query, viewer)
    assert by_name == database.read(profiles.list_profiles, page, viewer)
    assert len(by_name) == (2 if viewer == 'q' else 3)


def test_former_names_cost_no_extra_statement(database: Database) -> None:
    profile = create(database, 'a')
    change(database, profile, name='b')
    for name in ('a', 'b'):
        with statements(database) as sql:
            database.write(arqs.create_arqs, name, 'p', 'p')
        assert (len(sql), len(writes(sql))) == (2, 1)
        with statements(database) as sql:
            find_uuids_by_name(database, name)
        assert len(sql) == 1
