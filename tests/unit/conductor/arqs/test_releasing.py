# SPDX-License-Identifier: Apache-2.0
"""Release jobs: a handle is free after the agent has cleaned it."""

import pytest

from cyborg_lite.conductor.arqs.releasing import ReleaseHandler
from cyborg_lite.db.arqs import release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.jobs import Job, JobCount, JobState, NewJob
from cyborg_lite.model.operations import NewOperation, OperationKind
from tests.builders.bound_arqs import create_bound_instance
from tests.builders.rows import OWNER, owners, states
from tests.builders.service_rows import mark_down
from tests.doubles.agents import FakeAgents

EVERYBODY = Scope(project_id=None)


def delete_bound_arq(database: Database) -> tuple[list[str], Job]:
    """Delete a bound ARQ whose handle the agent must clean; return its release job."""
    uuids, instance = create_bound_instance(database, 1, needs_host=True)
    operation = NewOperation(OperationKind.RELEASE, request_id='req-1')
    database.write(release.delete_arqs_of_instance, instance, EVERYBODY, operation)
    (job,) = database.write(queue.lease_jobs, OWNER, 10)
    return uuids, job


def test_release_agent_unreachable_keeps_claim(database: Database) -> None:
    uuids, job = delete_bound_arq(database)
    agents = FakeAgents()
    agents.down_hosts = {'compute-1'}
    with pytest.raises(HostAway):
        ReleaseHandler(database, agents).run(job)
    assert states(database, uuids) == ['Deleting']
    assert owners(database) == uuids


def test_release_agent_down_does_not_call_agent(database: Database) -> None:
    uuids, job = delete_bound_arq(database)
    mark_down(database, 'compute-1')
    agents = FakeAgents()
    with pytest.raises(HostAway):
        ReleaseHandler(database, agents).run(job)
    assert agents.calls == []
    assert owners(database) == uuids


def test_release_second_run_does_not_call_agent(database: Database) -> None:
    _, job = delete_bound_arq(database)
    agents = FakeAgents()
    handler = ReleaseHandler(database, agents)
    handler.run(job)
    database.write(queue.add_job, NewJob(OperationKind.RELEASE, job.payload))
    (next_job,) = database.write(queue.lease_jobs, OWNER, 10, (OperationKind.RELEASE,))
    handler.run(next_job)
    assert len(agents.calls) == 1
    assert database.read(queue.count_jobs) == (
        JobCount(OperationKind.RECONCILE, JobState.WAITING, 1),
    )


def test_release_expired_stays_as_failed(database: Database) -> None:
    _, job = delete_bound_arq(database)
    ReleaseHandler(database, FakeAgents()).expire(job, 'cancelled')
    assert database.read(queue.count_jobs) == (
        JobCount(OperationKind.RELEASE, JobState.FAILED, 1),
    )
