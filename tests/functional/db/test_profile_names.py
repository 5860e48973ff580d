# SPDX-License-Identifier: Apache-2.0
"""Renamed and private profiles, where databases differ: locks, words and races."""

import threading
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from cyborg_lite.db import arqs, device_profiles, profile_access
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import DeviceProfileExists, DeviceProfileNotFound
from cyborg_lite.model.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.queries import Query

PROJECT = 'a' * 32


def create(database: Database, name: str) -> str:
    wanted = DeviceProfile(
        uuid=str(uuid4()),
        name=name,
        description=None,
        groups=({'resources:PGPU': '1'},),
        created_at=datetime.now(UTC),
    )
    return database.write(device_profiles.create, wanted).uuid


def rename(database: Database, uuid: str, name: str) -> None:
    change = ProfileChange(fields=('name',), name=name)
    database.write(device_profiles.change_one, uuid, change)


def called(database: Database, name: str) -> list[str]:
    query = Query(filters={'name': (name,)})
    return [one.uuid for one in database.read(device_profiles.listed, query)]


def test_a_former_name_is_kept_and_goes_with_its_profile(database: Database) -> None:
    uuid = create(database, 'a')
    for name in ('b', 'a', 'c'):
        rename(database, uuid, name)
    assert [called(database, name) for name in 'abc'] == [[uuid]] * 3
    with pytest.raises(DeviceProfileExists, match='profile b already exists'):
        create(database, 'b')
    other = create(database, 'z')
    with pytest.raises(DeviceProfileExists, match='profile c already exists'):
        rename(database, other, 'c')
    with pytest.raises(DeviceProfileExists, match='profile b already exists'):
        rename(database, other, 'b')
    database.write(device_profiles.delete, ['c'])
    assert create(database, 'b') != uuid


def test_a_private_profile_is_for_projects_with_access(database: Database) -> None:
    uuid = create(database, 'a')
    hidden = ProfileChange(fields=('is_public',), is_public=False)
    database.write(device_profiles.change_one, uuid, hidden)
    with pytest.raises(DeviceProfileNotFound):
        database.write(arqs.create, 'a', PROJECT, PROJECT)
    assert database.write(profile_access.grant, uuid, [PROJECT], None) == (PROJECT,)
    assert len(database.write(arqs.create, 'a', PROJECT, PROJECT)) == 1
    database.write(profile_access.revoke, uuid, [PROJECT], None)
    assert database.read(profile_access.projects, uuid, None) == ()


def test_of_many_who_grant_at_once_none_is_refused(database: Database) -> None:
    uuid = create(database, 'a')
    together = threading.Barrier(4)
    granted: list[tuple[str, ...]] = []

    def grant() -> None:
        together.wait()
        granted.append(database.write(profile_access.grant, uuid, [PROJECT], None))

    threads = [threading.Thread(target=grant) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert granted == [(PROJECT,)] * 4
