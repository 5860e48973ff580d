# SPDX-License-Identifier: Apache-2.0
"""Device profiles: unique names and uuids, and deletion of several at once."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from cyborg_lite.db.arqs import arqs
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.profiles import (
    DeviceProfileExists,
    DeviceProfileInUse,
    DeviceProfileNotFound,
)
from cyborg_lite.model.profiles.device_profiles import DeviceProfile
from cyborg_lite.model.queries import Query
from tests.support.sql_statements import statements, writes

_GROUPS = (
    {'resources:PGPU': '2', 'trait:CUSTOM_A': 'required'},
    {'resources:FPGA': '1'},
)


def _build_profile(name: str, uuid: str | None = None) -> DeviceProfile:
    return DeviceProfile(
        uuid=uuid or str(uuid4()),
        name=name,
        description=None,
        groups=_GROUPS,
        created_at=datetime.min.replace(tzinfo=UTC),
    )


def _create(database: Database, *names: str) -> list[DeviceProfile]:
    return [
        database.write(profiles.create_profile, _build_profile(name)) for name in names
    ]


def _list_names(database: Database) -> list[str]:
    return [profile.name for profile in database.read(profiles.list_profiles, Query())]


def test_list_profiles_returns_created_profile(database: Database) -> None:
    before = datetime.now(UTC)
    [profile] = _create(database, 'a')
    [listed] = database.read(profiles.list_profiles, Query())
    assert listed == profile
    assert listed.groups == _GROUPS
    assert before <= listed.created_at <= datetime.now(UTC)
    assert listed.updated_at is None


def test_create_and_list_profiles_cost_one_statement_each(database: Database) -> None:
    with statements(database) as sql:
        _create(database, 'a')
    assert len(sql) == len(writes(sql)) == 1
    with statements(database) as sql:
        _list_names(database)
    assert len(sql) == 1


def test_create_profile_existing_name_raises(database: Database) -> None:
    _create(database, 'a')
    with pytest.raises(DeviceProfileExists, match='Device profile a already exists'):
        _create(database, 'a')
    assert _list_names(database) == ['a']


def test_create_profile_existing_uuid_raises(database: Database) -> None:
    [profile] = _create(database, 'a')
    with pytest.raises(DeviceProfileExists, match=profile.uuid):
        database.write(profiles.create_profile, _build_profile('b', profile.uuid))


@pytest.mark.parametrize('by', ['name', 'uuid'])
def test_list_profiles_filters_by_name_and_uuid(database: Database, by: str) -> None:
    _, expected, _ = _create(database, 'a', 'b', 'c')
    query = Query(filters={by: (getattr(expected, by), 'unknown')})
    assert database.read(profiles.list_profiles, query) == (expected,)


def test_delete_profiles_accepts_names_and_uuids(database: Database) -> None:
    _, b, _ = _create(database, 'a', 'b', 'c')
    database.write(profiles.delete_profiles, ['a', b.uuid])
    assert _list_names(database) == ['c']


def test_delete_profiles_same_profile_twice_succeeds(database: Database) -> None:
    [profile] = _create(database, 'a')
    database.write(profiles.delete_profiles, ['a', profile.uuid, 'a'])
    assert _list_names(database) == []


def test_delete_profiles_unknown_name_deletes_nothing(database: Database) -> None:
    _create(database, 'a')
    with pytest.raises(DeviceProfileNotFound, match='Device profile x not found'):
        database.write(profiles.delete_profiles, ['a', 'x'])
    assert _list_names(database) == ['a']


def test_delete_profiles_profile_in_use_deletes_nothing(database: Database) -> None:
    _create(database, 'a', 'b')
    database.write(arqs.create_arqs, 'b', None)
    with pytest.raises(DeviceProfileInUse, match='Device profile b is in use'):
        database.write(profiles.delete_profiles, ['a', 'b'])
    assert _list_names(database) == ['a', 'b']


def test_delete_profiles_foreign_key_protects_used_profile(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The foreign key decides; the test disables the check before it."""
    _create(database, 'a')
    database.write(arqs.create_arqs, 'a', None)
    monkeypatch.setattr(profiles, '_check_unused', lambda *_: None)
    with pytest.raises(DeviceProfileInUse, match='Device profile a is in use'):
        database.write(profiles.delete_profiles, ['a'])
    assert _list_names(database) == ['a']


def test_delete_profiles_uuid_precedes_equal_name(database: Database) -> None:
    [first] = _create(database, 'a')
    _create(database, first.uuid)
    database.write(profiles.delete_profiles, [first.uuid])
    assert _list_names(database) == [first.uuid]


def test_delete_profiles_empty_list_deletes_nothing(database: Database) -> None:
    _create(database, 'a')
    database.write(profiles.delete_profiles, [])
    assert _list_names(database) == ['a']
