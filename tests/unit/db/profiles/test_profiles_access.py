# SPDX-License-Identifier: Apache-2.0
"""Private device profiles: projects without access get DeviceProfileNotFound."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from cyborg_lite.db.arqs import arqs
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.queries import Query
from tests.support.sql_statements import statements

PROJECT, OTHER_PROJECT = 'a' * 32, 'b' * 32


@pytest.fixture
def private_uuid(database: Database) -> str:
    """Create a public and a private profile; return the uuid of the private one."""
    return [_create(database, name, name == 'open') for name in ('open', 'closed')][1]


def _create(database: Database, name: str, is_public: bool) -> str:
    profile = DeviceProfile(
        uuid=str(uuid4()),
        name=name,
        description=None,
        groups=({'resources:PGPU': '1'},),
        created_at=datetime.now(UTC),
        is_public=is_public,
    )
    return database.write(profiles.create_profile, profile).uuid


def list_names(database: Database, viewer: str | None) -> list[str]:
    visible = database.read(profiles.list_profiles, Query(), viewer)
    return [profile.name for profile in visible]


def test_list_profiles_private_is_visible_to_admin_only(
    database: Database, private_uuid: str
) -> None:
    assert list_names(database, None) == ['open', 'closed']
    assert list_names(database, PROJECT) == list_names(database, '') == ['open']


@pytest.mark.parametrize('by', ['uuid', 'name'])
def test_list_profiles_filter_does_not_reveal_private(
    database: Database, private_uuid: str, by: str
) -> None:
    query = Query(filters={by: (private_uuid if by == 'uuid' else 'closed',)})
    assert database.read(profiles.list_profiles, query, PROJECT) == ()
    assert len(database.read(profiles.list_profiles, query, None)) == 1


@pytest.mark.parametrize('sort_key', [None, 'name', 'created_at'])
def test_list_profiles_marker_does_not_reveal_private(
    database: Database, private_uuid: str, sort_key: str | None
) -> None:
    _create(database, 'public', is_public=True)  # a row after the marker
    query = Query(marker=private_uuid, sort_key=sort_key)
    with pytest.raises(InvalidInput, match=f'{private_uuid} is not in'):
        database.read(profiles.list_profiles, query, PROJECT)
    assert len(database.read(profiles.list_profiles, query, None)) > 0
    database.write(profiles.grant_access, private_uuid, [PROJECT], None)
    assert len(database.read(profiles.list_profiles, query, PROJECT)) > 0


def test_grant_access_applies_to_given_project_only(
    database: Database, private_uuid: str
) -> None:
    assert database.write(profiles.grant_access, private_uuid, [PROJECT], None) == (
        PROJECT,
    )
    assert list_names(database, PROJECT) == ['open', 'closed']
    assert list_names(database, OTHER_PROJECT) == ['open']
    assert len(database.write(arqs.create_arqs, 'closed', PROJECT, PROJECT)) == 1
    with pytest.raises(DeviceProfileNotFound):
        database.write(arqs.create_arqs, 'closed', OTHER_PROJECT, OTHER_PROJECT)
    database.write(profiles.revoke_access, private_uuid, [PROJECT, OTHER_PROJECT], None)
    with pytest.raises(DeviceProfileNotFound):
        database.write(arqs.create_arqs, 'closed', PROJECT, PROJECT)
    assert len(database.write(arqs.create_arqs, 'closed', PROJECT, None)) == 1


def test_grant_access_twice_lists_project_once(
    database: Database, private_uuid: str
) -> None:
    database.write(
        profiles.grant_access, private_uuid, [OTHER_PROJECT, OTHER_PROJECT], None
    )
    projects = database.write(
        profiles.grant_access, private_uuid, [PROJECT, OTHER_PROJECT], None
    )
    assert projects == (OTHER_PROJECT, PROJECT)
    assert database.read(profiles.list_projects, private_uuid, None) == projects


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
    change = ProfileChange(fields=('enabled',), enabled=False)
    for work in (
        lambda: database.write(profiles.update_profile, private_uuid, change, PROJECT),
        lambda: database.write(profiles.delete_profiles, [private_uuid], PROJECT),
        lambda: database.write(profiles.grant_access, private_uuid, [PROJECT], PROJECT),
        lambda: database.write(
            profiles.revoke_access, private_uuid, [PROJECT], PROJECT
        ),
        lambda: database.read(profiles.list_projects, private_uuid, PROJECT),
    ):
        with pytest.raises(DeviceProfileNotFound):
            work()
    assert list_names(database, None) == ['open', 'closed']


def test_delete_profile_deletes_access_list(
    database: Database, private_uuid: str
) -> None:
    database.write(profiles.grant_access, private_uuid, [PROJECT], None)
    database.write(profiles.delete_profiles, [private_uuid])
    assert list_names(database, None) == ['open']


def test_private_profile_costs_no_extra_statement(
    database: Database, private_uuid: str
) -> None:
    database.write(profiles.grant_access, private_uuid, [PROJECT], None)
    with statements(database) as sql:
        assert len(list_names(database, PROJECT)) == 2
    assert len(sql) == 1
    with statements(database) as sql:
        database.write(arqs.create_arqs, 'closed', PROJECT, PROJECT)
    assert len(sql) == 2
