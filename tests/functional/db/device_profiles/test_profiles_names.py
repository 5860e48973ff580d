# SPDX-License-Identifier: Apache-2.0
"""Renamed and private profiles where the databases differ: locks and races."""

import threading
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from cyborg_lite.db.arqs import arqs
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.profiles import DeviceProfileExists, DeviceProfileNotFound
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.queries import Query

PROJECT = 'a' * 32


def create(database: Database, name: str) -> str:
    profile = DeviceProfile(
        uuid=str(uuid4()),
        name=name,
        description=None,
        groups=({'resources:PGPU': '1'},),
        created_at=datetime.now(UTC),
    )
    return database.write(profiles.create_profile, profile).uuid


def rename(database: Database, uuid: str, name: str) -> None:
    change = ProfileChange(fields=('name',), name=name)
    database.write(profiles.update_profile, uuid, change)


def find_uuids_by_name(database: Database, name: str) -> list[str]:
    query = Query(filters={'name': (name,)})
    return [profile.uuid for profile in database.read(profiles.list_profiles, query)]


def test_former_name_is_reserved_until_profile_deletion(database: Database) -> None:
    uuid = create(database, 'a')
    for name in ('b', 'a', 'c'):
        rename(database, uuid, name)
    assert [find_uuids_by_name(database, name) for name in 'abc'] == [[uuid]] * 3
    with pytest.raises(DeviceProfileExists, match='profile b already exists'):
        create(database, 'b')
    second = create(database, 'z')
    with pytest.raises(DeviceProfileExists, match='profile c already exists'):
        rename(database, second, 'c')
    with pytest.raises(DeviceProfileExists, match='profile b already exists'):
        rename(database, second, 'b')
    database.write(profiles.delete_profiles, ['c'])
    assert create(database, 'b') != uuid


def test_create_arqs_private_profile_needs_access(database: Database) -> None:
    uuid = create(database, 'a')
    hidden = ProfileChange(fields=('is_public',), is_public=False)
    database.write(profiles.update_profile, uuid, hidden)
    with pytest.raises(DeviceProfileNotFound):
        database.write(arqs.create_arqs, 'a', PROJECT, PROJECT)
    assert database.write(profiles.grant_access, uuid, [PROJECT], None) == (PROJECT,)
    assert len(database.write(arqs.create_arqs, 'a', PROJECT, PROJECT)) == 1
    database.write(profiles.revoke_access, uuid, [PROJECT], None)
    assert database.read(profiles.list_projects, uuid, None) == ()


def test_grant_access_concurrent_all_succeed(database: Database) -> None:
    uuid = create(database, 'a')
    barrier = threading.Barrier(4)
    results: list[tuple[str, ...]] = []

    def grant() -> None:
        barrier.wait()
        results.append(database.write(profiles.grant_access, uuid, [PROJECT], None))

    threads = [threading.Thread(target=grant) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [(PROJECT,)] * 4
