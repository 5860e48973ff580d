# SPDX-License-Identifier: Apache-2.0
"""Device profiles where the databases differ: error texts, orders and races."""

import threading
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from cyborg_lite.db.arqs import arqs
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.base import CyborgError, InvalidInput
from cyborg_lite.errors.profiles import DeviceProfileExists, DeviceProfileInUse
from cyborg_lite.model.profiles.device_profiles import DeviceProfile
from cyborg_lite.model.queries import Query


def _build_profile(name: str, uuid: str | None = None) -> DeviceProfile:
    return DeviceProfile(
        uuid=uuid or str(uuid4()),
        name=name,
        description=None,
        groups=({'resources:PGPU': '1'},),
        created_at=datetime.now(UTC),
    )


def test_create_profile_concurrent_same_name_one_succeeds(database: Database) -> None:
    results: list[str] = []
    barrier = threading.Barrier(6)

    def create() -> None:
        barrier.wait()
        try:
            database.write(profiles.create_profile, _build_profile('a'))
        except CyborgError as error:
            results.append(type(error).__name__)
        else:
            results.append('created')

    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ['DeviceProfileExists'] * 5 + ['created']
    assert len(database.read(profiles.list_profiles, Query())) == 1


def test_create_profile_existing_name_or_uuid_raises(database: Database) -> None:
    profile = database.write(profiles.create_profile, _build_profile('a'))
    with pytest.raises(DeviceProfileExists, match='profile a already exists'):
        database.write(profiles.create_profile, _build_profile('a'))
    with pytest.raises(DeviceProfileExists, match=profile.uuid):
        database.write(profiles.create_profile, _build_profile('b', profile.uuid))


def test_delete_profiles_foreign_key_protects_used_profile(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.write(profiles.create_profile, _build_profile('a'))
    database.write(arqs.create_arqs, 'a', None)
    monkeypatch.setattr(profiles, '_check_unused', lambda *_: None)
    with pytest.raises(DeviceProfileInUse, match='profile a is in use'):
        database.write(profiles.delete_profiles, ['a'])


def test_list_profiles_sort_order_equals_on_every_database(database: Database) -> None:
    for name in 'bdac':
        database.write(profiles.create_profile, _build_profile(name))
    names = ''
    while True:
        marker = _find_uuid(database, names[-1]) if names else None
        query = Query(sort_key='updated_at', limit=1, marker=marker)
        rows = database.read(profiles.list_profiles, query)
        if not rows:
            break
        names += rows[0].name
    # All values of updated_at are NULL, so the order is that of creation.
    assert names == 'bdac'
    query = Query(sort_key='name', descending=True)
    rows = database.read(profiles.list_profiles, query)
    assert ''.join(profile.name for profile in rows) == 'dcba'


def _find_uuid(database: Database, name: str) -> str:
    [profile] = database.read(profiles.list_profiles, Query(filters={'name': (name,)}))
    return profile.uuid


@pytest.mark.parametrize('value', ['\0', '\ud800'])
def test_list_profiles_invalid_text_filter_finds_nothing(
    database: Database, value: str
) -> None:
    query = Query(filters={'name': (value,)})
    assert database.read(profiles.list_profiles, query) == ()


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
        profile = replace(
            _build_profile(f'p{number}'), enabled=number % 3 > 0, is_public=True
        )
        database.write(profiles.create_profile, profile)
    query = Query({'is_public': ('true',)}, 4, None, 'enabled', descending)
    first = database.read(profiles.list_profiles, query)
    second_page = replace(query, marker=first[-1].uuid)
    listed = [*first, *database.read(profiles.list_profiles, second_page)]
    ordered = ['p0', 'p3', 'p1', 'p2', 'p4', 'p5']
    assert [listed_profile.name for listed_profile in listed] == ordered[
        :: -1 if descending else 1
    ]
    disabled = Query({'enabled': ('false',)})
    disabled_profiles = database.read(profiles.list_profiles, disabled)
    assert [listed_profile.name for listed_profile in disabled_profiles] == ['p0', 'p3']
