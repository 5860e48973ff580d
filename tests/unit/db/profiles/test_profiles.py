# SPDX-License-Identifier: Apache-2.0
"""Device profiles: unique names and uuids, and deletion of several at once."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from cyborg_lite.db.arqs import arqs
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.profiles import (
    DeviceProfileExists,
    DeviceProfileInUse,
    DeviceProfileNotFound,
)
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.queries import Query
from tests.support.sql_statements import statements, writes

GROUPS = ({'resources:PGPU': '2', 'trait:CUSTOM_A': 'required'},)
PROJECT, OTHER_PROJECT = 'a' * 32, 'b' * 32


def build_profile(name: str, **fields: Any) -> DeviceProfile:
    moment = datetime.min.replace(tzinfo=UTC)
    values: dict[str, Any] = {'uuid': str(uuid4()), 'description': 'old', **fields}
    return DeviceProfile(name=name, groups=GROUPS, created_at=moment, **values)


def create(database: Database, name: str, **fields: Any) -> DeviceProfile:
    return database.write(profiles.create_profile, build_profile(name, **fields))


def create_all(database: Database, names: str) -> list[DeviceProfile]:
    """Create a profile for each letter."""
    return [create(database, name) for name in names]


def _list_names(database: Database) -> list[str]:
    return [profile.name for profile in database.read(profiles.list_profiles, Query())]


def test_create_and_list_profiles_cost_one_statement_each(database: Database) -> None:
    with statements(database) as sql:
        create_all(database, 'a')
    assert len(sql) == len(writes(sql)) == 1
    with statements(database) as sql:
        _list_names(database)
    assert len(sql) == 1


def test_delete_profiles_foreign_key_protects_used_profile(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The foreign key decides; the test disables the check before it."""
    create_all(database, 'a')
    database.write(arqs.create_arqs, 'a', None)
    monkeypatch.setattr(profiles, '_check_unused', lambda *_: None)
    with pytest.raises(DeviceProfileInUse, match='Device profile a is in use'):
        database.write(profiles.delete_profiles, ['a'])
    assert _list_names(database) == ['a']


# --- changes of device profiles, and former names that still identify them ----------


def change(database: Database, profile: DeviceProfile, **values: Any) -> DeviceProfile:
    profile_change = ProfileChange(fields=tuple(values), **values)
    return database.write(profiles.update_profile, profile.uuid, profile_change)


def find_uuids_by_name(database: Database, *names: str) -> list[str]:
    """Return the uuids of the profiles with these current or former names."""
    query = Query(filters={'name': names})
    return [profile.uuid for profile in database.read(profiles.list_profiles, query)]


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


def test_former_name_can_be_reused_by_profile_only(database: Database) -> None:
    profile, second = create(database, 'a'), create(database, 'z')
    change(database, profile, name='b')
    with pytest.raises(DeviceProfileExists, match='Device profile a already exists'):
        create(database, 'a')
    with pytest.raises(DeviceProfileExists, match='Device profile a already exists'):
        change(database, second, name='a')
    assert change(database, profile, name='a').name == 'a'
    for name in 'ab':
        assert find_uuids_by_name(database, name) == [profile.uuid]
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


@pytest.mark.parametrize('viewer', [None, 'p', 'q'])
def test_list_profiles_by_name_equals_page(
    database: Database, viewer: str | None
) -> None:
    create_all(database, 'abc')
    hidden = change(database, create(database, 'd'), is_public=False, enabled=False)
    database.write(profiles.grant_access, hidden.uuid, ['p'], None)
    query = Query(filters={'name': ('d', 'a', 'b', 'x', 'a\0', '\ud800')})
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


# --- private profiles ---


@pytest.fixture
def private_uuid(database: Database) -> str:
    """Create a public and a private profile; return the uuid of the private one."""
    create(database, 'open')
    return create(database, 'closed', is_public=False).uuid


def list_visible(database: Database, viewer: str | None) -> list[str]:
    visible = database.read(profiles.list_profiles, Query(), viewer)
    return [profile.name for profile in visible]


def test_former_name_does_not_reveal_private_profile(
    database: Database, private_uuid: str
) -> None:
    renamed = ProfileChange(fields=('name',), name='other')
    database.write(profiles.update_profile, private_uuid, renamed)
    query = Query(filters={'name': ('closed',)})
    assert database.read(profiles.list_profiles, query, PROJECT) == ()
    with pytest.raises(DeviceProfileNotFound):
        database.write(arqs.create_arqs, 'closed', PROJECT, PROJECT)


def test_profile_operations_invisible_profile_raise_not_found(
    database: Database, private_uuid: str
) -> None:
    write, projects = database.write, [PROJECT]
    change = ProfileChange(fields=('enabled',), enabled=False)
    for work in (
        lambda: write(profiles.update_profile, private_uuid, change, PROJECT),
        lambda: write(profiles.delete_profiles, [private_uuid], PROJECT),
        lambda: write(profiles.grant_access, private_uuid, projects, PROJECT),
        lambda: write(profiles.revoke_access, private_uuid, projects, PROJECT),
        lambda: database.read(profiles.list_projects, private_uuid, Query(), PROJECT),
    ):
        with pytest.raises(DeviceProfileNotFound):
            work()
    assert list_visible(database, None) == ['open', 'closed']


def test_delete_profile_deletes_access_list(
    database: Database, private_uuid: str
) -> None:
    database.write(profiles.grant_access, private_uuid, [PROJECT], None)
    database.write(profiles.delete_profiles, [private_uuid])
    assert list_visible(database, None) == ['open']


def test_private_profile_costs_no_extra_statement(
    database: Database, private_uuid: str
) -> None:
    database.write(profiles.grant_access, private_uuid, [PROJECT], None)
    with statements(database) as sql:
        assert len(list_visible(database, PROJECT)) == 2
    assert len(sql) == 1
    with statements(database) as sql:
        database.write(arqs.create_arqs, 'closed', PROJECT, PROJECT)
    assert len(sql) == 2


# --- order and text ------------------------------------------------------------------


@pytest.mark.parametrize('marker', ['\0', '\ud800', 'x' * 300])
def test_list_profiles_invalid_marker_raises(database: Database, marker: str) -> None:
    with pytest.raises(InvalidInput):
        database.read(profiles.list_profiles, Query(marker=marker))


@pytest.mark.parametrize('descending', [False, True])
def test_list_profiles_filters_and_sorts_by_booleans(
    database: Database, descending: bool
) -> None:
    """Databases differ in the type and in the order of booleans."""
    for number in range(6):
        create(database, f'p{number}', enabled=number % 3 > 0)
    query = Query({'is_public': ('true',)}, 4, None, 'enabled', descending)
    first = database.read(profiles.list_profiles, query)
    second_page = replace(query, marker=first[-1].uuid)
    listed = [*first, *database.read(profiles.list_profiles, second_page)]
    ordered = ['p0', 'p3', 'p1', 'p2', 'p4', 'p5']
    assert [item.name for item in listed] == ordered[:: -1 if descending else 1]
    disabled = database.read(profiles.list_profiles, Query({'enabled': ('false',)}))
    assert [item.name for item in disabled] == ['p0', 'p3']
