# SPDX-License-Identifier: Apache-2.0
"""A disabled profile serves the servers that had it, and no others."""

from uuid import uuid4

import pytest
from sqlalchemy import func, select, update

from cyborg_lite.db import arqs, binding, device_profiles, jobs, release
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import DeviceProfile, FormerServer
from cyborg_lite.exceptions import DeviceProfileDisabled
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.jobs import Kind, NewJob
from tests.fakes.rows import OWNER, PROJECT, add_card, add_profile, bindings
from tests.fakes.statements import statements

EVERYBODY = Scope(project_id=None)


class Story:
    """Servers of one profile, on one card of four."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.card = add_card(database, 4)
        self.profile = add_profile(database, [{'resources:PGPU': '2'}])

    def enable(self, enabled: bool) -> None:
        changed = update(DeviceProfile).values(enabled=enabled)
        self.database.write(lambda session: session.execute(changed))

    def create(self, *, of_service: bool = True) -> list[str]:
        made = self.database.write(
            arqs.create, self.profile, PROJECT, of_service=of_service
        )
        return [one.uuid for one in made]

    def bind(self, uuids: list[str], server: str) -> None:
        wanted, new = bindings(uuids, self.card, server), NewJob(Kind.BIND)
        job = self.database.write(binding.accept, wanted, EVERYBODY, new, OWNER)
        told = NewJob(Kind.NOVA_EVENT)
        event = self.database.write(binding.claim, job, uuids, None, told).job
        self.database.write(jobs.finish, event)

    def leave(self, server: str) -> None:
        self.database.write(release.delete_of_instance, server, EVERYBODY, None)

    def remembered(self) -> int:
        count = select(func.count()).select_from(FormerServer)
        return self.database.read(lambda session: session.scalar(count)) or 0


@pytest.fixture
def story(database: Database) -> Story:
    return Story(database)


@pytest.fixture
def shelved(story: Story) -> str:
    """A server that had the profile, which is disabled now."""
    server = str(uuid4())
    story.bind(story.create(), server)
    story.leave(server)
    story.enable(False)
    return server


def test_a_server_that_had_the_profile_comes_back(story: Story, shelved: str) -> None:
    for _time in range(2):
        story.bind(story.create(), shelved)
        story.leave(shelved)
    assert story.remembered() == 1


def test_a_new_server_does_not_get_what_another_left(
    story: Story, shelved: str
) -> None:
    uuids = story.create()
    with pytest.raises(DeviceProfileDisabled):
        story.bind(uuids, str(uuid4()))
    story.bind(uuids, shelved)


def test_only_services_bring_servers_back(story: Story, shelved: str) -> None:
    with pytest.raises(DeviceProfileDisabled):
        story.create(of_service=False)


def test_nobody_is_awaited_where_nobody_left(story: Story) -> None:
    running = str(uuid4())
    story.bind(story.create(), running)
    story.enable(False)
    with pytest.raises(DeviceProfileDisabled):
        story.create()


def test_a_server_that_never_had_its_accelerators_is_not_awaited(story: Story) -> None:
    story.leave(str(uuid4()))
    uuids, server = story.create(), str(uuid4())
    wanted = bindings(uuids, story.card, server)
    new = NewJob(Kind.BIND)
    story.database.write(binding.accept, wanted, EVERYBODY, new, OWNER)
    story.leave(server)
    assert story.remembered() == 0


def test_what_was_made_before_may_be_bound(story: Story) -> None:
    uuids = story.create()
    story.enable(False)
    story.bind(uuids, str(uuid4()))


def test_a_profile_takes_its_memories_along(story: Story, shelved: str) -> None:
    story.database.write(device_profiles.delete, [story.profile])
    assert story.remembered() == 0


def test_a_boot_pays_nothing_for_it(story: Story) -> None:
    with statements(story.database) as sent:
        story.bind(story.create(), str(uuid4()))
    assert not [text for text in sent if 'former_servers' in text]
