# SPDX-License-Identifier: Apache-2.0
"""A device is free when its host says that it is clean, and not before."""

import pytest

from cyborg_lite.conductor.releasing import ReleaseHandler
from cyborg_lite.db import jobs, release
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import HostAway
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.jobs import Job, JobCount, JobState, Kind, NewJob
from tests.fakes.agents import FakeAgents
from tests.fakes.daemons import call_down
from tests.fakes.rows import OWNER, owners, states
from tests.unit.db.test_release import bound

EVERYBODY = Scope(project_id=None)


def deleted(database: Database) -> tuple[list[str], Job]:
    """A request that needs its host, on its way out, and the job of it."""
    uuids, instance = bound(database, 1, needs_host=True)
    database.write(release.delete_of_instance, instance, EVERYBODY, 'req-1')
    (job,) = database.write(jobs.take, OWNER, 10)
    return uuids, job


def test_a_released_device_is_free_and_its_request_gone(database: Database) -> None:
    uuids, job = deleted(database)
    agents = FakeAgents()
    ReleaseHandler(database, agents).run(job)
    assert agents.calls == [('release', 'compute-1', 1)]
    assert states(database, uuids) == []
    assert owners(database) == []
    assert database.read(jobs.count) == ()


def test_while_its_host_is_away_a_device_stays_held(database: Database) -> None:
    uuids, job = deleted(database)
    agents = FakeAgents()
    agents.away = {'compute-1'}
    with pytest.raises(HostAway):
        ReleaseHandler(database, agents).run(job)
    assert states(database, uuids) == ['Deleting']
    assert owners(database) == uuids


def test_a_host_that_is_known_to_be_silent_is_not_waited_for(
    database: Database,
) -> None:
    uuids, job = deleted(database)
    call_down(database, 'compute-1')
    agents = FakeAgents()
    with pytest.raises(HostAway):
        ReleaseHandler(database, agents).run(job)
    assert agents.calls == []
    assert owners(database) == uuids


def test_a_second_run_leaves_the_next_owner_alone(database: Database) -> None:
    _, job = deleted(database)
    agents = FakeAgents()
    handler = ReleaseHandler(database, agents)
    handler.run(job)
    database.write(jobs.add, NewJob(Kind.RELEASE, job.payload))
    (again,) = database.write(jobs.take, OWNER, 10)
    handler.run(again)
    assert len(agents.calls) == 1
    assert database.read(jobs.count) == ()


def test_a_release_given_up_by_hand_is_kept_for_the_operator(
    database: Database,
) -> None:
    _, job = deleted(database)
    ReleaseHandler(database, FakeAgents()).expire(job, 'cancelled')
    assert database.read(jobs.count) == (JobCount(Kind.RELEASE, JobState.FAILED, 1),)
