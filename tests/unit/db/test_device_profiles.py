# SPDX-License-Identifier: Apache-2.0
"""Device profiles: unique names, whole deletions, no profile lost that is in use."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from cyborg_lite.db import arqs, device_profiles
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import (
    DeviceProfileExists,
    DeviceProfileInUse,
    DeviceProfileNotFound,
)
from cyborg_lite.model.device_profiles import DeviceProfile
from cyborg_lite.model.queries import Query
from tests.fakes.statements import statements, writes

_GROUPS = (
    {'resources:PGPU': '2', 'trait:CUSTOM_A': 'required'},
    {'resources:FPGA': '1'},
)


def _new(name: str, uuid: str | None = None) -> DeviceProfile:
    return DeviceProfile(
        uuid=uuid or str(uuid4()),
        name=name,
        description=None,
        groups=_GROUPS,
        created_at=datetime.min.replace(tzinfo=UTC),
    )


def _create(database: Database, *names: str) -> list[DeviceProfile]:
    return [database.write(device_profiles.create, _new(name)) for name in names]


def _names(database: Database) -> list[str]:
    return [profile.name for profile in database.read(device_profiles.listed, Query())]


def test_a_profile_comes_back_as_it_was_made(database: Database) -> None:
    before = datetime.now(UTC)
    [made] = _create(database, 'a')
    [found] = database.read(device_profiles.listed, Query())
    assert found == made
    assert found.groups == _GROUPS
    assert before <= found.created_at <= datetime.now(UTC)
    assert found.updated_at is None


def test_creation_writes_once_and_a_list_reads_once(database: Database) -> None:
    with statements(database) as seen:
        _create(database, 'a')
    assert len(seen) == len(writes(seen)) == 1
    with statements(database) as seen:
        _names(database)
    assert len(seen) == 1


def test_a_name_can_be_given_once(database: Database) -> None:
    _create(database, 'a')
    with pytest.raises(DeviceProfileExists, match='Device profile a already exists'):
        _create(database, 'a')
    assert _names(database) == ['a']


def test_a_uuid_can_be_given_once_and_is_named(database: Database) -> None:
    [made] = _create(database, 'a')
    with pytest.raises(DeviceProfileExists, match=made.uuid):
        database.write(device_profiles.create, _new('b', made.uuid))


@pytest.mark.parametrize('by', ['name', 'uuid'])
def test_profiles_are_found_by_name_and_by_uuid(database: Database, by: str) -> None:
    _, wanted, _ = _create(database, 'a', 'b', 'c')
    query = Query(filters={by: (getattr(wanted, by), 'unknown')})
    assert database.read(device_profiles.listed, query) == (wanted,)


def test_deletion_takes_names_and_uuids_mixed(database: Database) -> None:
    _, b, _ = _create(database, 'a', 'b', 'c')
    database.write(device_profiles.delete, ['a', b.uuid])
    assert _names(database) == ['c']


def test_the_same_profile_may_be_named_twice_in_one_deletion(
    database: Database,
) -> None:
    [made] = _create(database, 'a')
    database.write(device_profiles.delete, ['a', made.uuid, 'a'])
    assert _names(database) == []


def test_an_unknown_name_keeps_all_others(database: Database) -> None:
    _create(database, 'a')
    with pytest.raises(DeviceProfileNotFound, match='Device profile x not found'):
        database.write(device_profiles.delete, ['a', 'x'])
    assert _names(database) == ['a']


def test_a_profile_in_use_keeps_all_others(database: Database) -> None:
    _create(database, 'a', 'b')
    database.write(arqs.create, 'b', None)
    with pytest.raises(DeviceProfileInUse, match='Device profile b is in use'):
        database.write(device_profiles.delete, ['a', 'b'])
    assert _names(database) == ['a', 'b']


def test_a_profile_that_comes_into_use_meanwhile_is_kept(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The foreign key has the last word; here the look before it sees nothing."""
    _create(database, 'a')
    database.write(arqs.create, 'a', None)
    monkeypatch.setattr(device_profiles, '_check_unused', lambda *_: None)
    with pytest.raises(DeviceProfileInUse, match='Device profile a is in use'):
        database.write(device_profiles.delete, ['a'])
    assert _names(database) == ['a']


def test_the_uuid_wins_where_a_name_looks_like_it(database: Database) -> None:
    [first] = _create(database, 'a')
    _create(database, first.uuid)
    database.write(device_profiles.delete, [first.uuid])
    assert _names(database) == [first.uuid]


def test_deleting_nothing_deletes_nothing(database: Database) -> None:
    _create(database, 'a')
    database.write(device_profiles.delete, [])
    assert _names(database) == ['a']
