# SPDX-License-Identifier: Apache-2.0
"""Private profiles: not there, for projects without access."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from cyborg_lite.db import arqs, device_profiles, profile_access
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import DeviceProfileNotFound
from cyborg_lite.model.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.queries import Query
from tests.fakes.statements import statements

MINE, THEIRS = 'a' * 32, 'b' * 32


@pytest.fixture
def private(database: Database) -> str:
    """The uuid of a profile that nobody but admins sees; there is a public one."""
    return [_create(database, name, name == 'open') for name in ('open', 'closed')][1]


def _create(database: Database, name: str, is_public: bool) -> str:
    wanted = DeviceProfile(
        uuid=str(uuid4()),
        name=name,
        description=None,
        groups=({'resources:PGPU': '1'},),
        created_at=datetime.now(UTC),
        is_public=is_public,
    )
    return database.write(device_profiles.create, wanted).uuid


def seen(database: Database, viewer: str | None) -> list[str]:
    found = database.read(device_profiles.listed, Query(), viewer)
    return [one.name for one in found]


def test_admins_see_all_and_others_what_is_public(
    database: Database, private: str
) -> None:
    assert seen(database, None) == ['open', 'closed']
    assert seen(database, MINE) == seen(database, '') == ['open']


@pytest.mark.parametrize('by', ['uuid', 'name'])
def test_no_filter_finds_what_is_not_seen(
    database: Database, private: str, by: str
) -> None:
    query = Query(filters={by: (private if by == 'uuid' else 'closed',)})
    assert database.read(device_profiles.listed, query, MINE) == ()
    assert len(database.read(device_profiles.listed, query, None)) == 1


def test_access_is_for_the_project_that_has_it(
    database: Database, private: str
) -> None:
    assert database.write(profile_access.grant, private, [MINE], None) == (MINE,)
    assert seen(database, MINE) == ['open', 'closed']
    assert seen(database, THEIRS) == ['open']
    assert len(database.write(arqs.create, 'closed', MINE, MINE)) == 1
    with pytest.raises(DeviceProfileNotFound):
        database.write(arqs.create, 'closed', THEIRS, THEIRS)
    database.write(profile_access.revoke, private, [MINE, THEIRS], None)
    with pytest.raises(DeviceProfileNotFound):
        database.write(arqs.create, 'closed', MINE, MINE)
    assert len(database.write(arqs.create, 'closed', MINE, None)) == 1


def test_access_is_granted_once_and_listed_in_order(
    database: Database, private: str
) -> None:
    database.write(profile_access.grant, private, [THEIRS, THEIRS], None)
    both = database.write(profile_access.grant, private, [MINE, THEIRS], None)
    assert both == (THEIRS, MINE)
    assert database.read(profile_access.projects, private, None) == both


def test_a_former_name_does_not_show_what_is_private(
    database: Database, private: str
) -> None:
    renamed = ProfileChange(fields=('name',), name='other')
    database.write(device_profiles.change_one, private, renamed)
    query = Query(filters={'name': ('closed',)})
    assert database.read(device_profiles.listed, query, MINE) == ()
    with pytest.raises(DeviceProfileNotFound):
        database.write(arqs.create, 'closed', MINE, MINE)


def test_who_does_not_see_a_profile_can_do_nothing_with_it(
    database: Database, private: str
) -> None:
    change = ProfileChange(fields=('enabled',), enabled=False)
    for work in (
        lambda: database.write(device_profiles.change_one, private, change, MINE),
        lambda: database.write(device_profiles.delete, [private], MINE),
        lambda: database.write(profile_access.grant, private, [MINE], MINE),
        lambda: database.write(profile_access.revoke, private, [MINE], MINE),
        lambda: database.read(profile_access.projects, private, MINE),
    ):
        with pytest.raises(DeviceProfileNotFound):
            work()
    assert seen(database, None) == ['open', 'closed']


def test_the_list_goes_with_its_profile(database: Database, private: str) -> None:
    database.write(profile_access.grant, private, [MINE], None)
    database.write(device_profiles.delete, [private])
    assert seen(database, None) == ['open']


def test_what_is_private_costs_no_statement(database: Database, private: str) -> None:
    database.write(profile_access.grant, private, [MINE], None)
    with statements(database) as sent:
        assert len(seen(database, MINE)) == 2
    assert len(sent) == 1
    with statements(database) as sent:
        database.write(arqs.create, 'closed', MINE, MINE)
    assert len(sent) == 2
