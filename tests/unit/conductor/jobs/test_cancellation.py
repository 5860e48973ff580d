# SPDX-License-Identifier: Apache-2.0
"""Handlers of jobs that an operator has cancelled."""

from uuid import uuid4

import pytest

from cyborg_lite.conductor.arqs.binding import BindHandler, build_bind_job
from cyborg_lite.conductor.arqs.releasing import ReleaseHandler
from cyborg_lite.db.arqs import arqs, binding, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import administration, queue
from cyborg_lite.errors.jobs import OperationRefused
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.jobs import JobState, NewJob
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from tests.builders.bind_jobs import complete_bind
from tests.builders.bind_rules import RULES
from tests.builders.rows import OWNER, add_arqs, add_card, bindings, owners, states
from tests.doubles.agents import FakeAgents
from tests.doubles.consumers import FakeConsumers

ALL_PROJECTS = Scope(project_id=None)


def test_cancel_bind_fails_arqs_and_releases_handles(database: Database) -> None:
    """The result is the same as for a timeout, with an event to Nova."""
    uuids, instance = add_arqs(database, 2), str(uuid4())
    requested = bindings(uuids, add_card(database, 2, needs_host=True), instance)
    new = build_bind_job(requested, RULES, 'req-1')
    job = database.write(binding.accept_bind, requested, ALL_PROJECTS, new, OWNER)
    claimed = database.write(
        binding.claim_for_bind, job, uuids, None, NewJob(OperationKind.NOVA_EVENT)
    )
    database.write(
        queue.postpone_job, claimed.job, 200_000, 'The host does not answer.'
    )
    assert owners(database) == sorted(uuids)

    database.write(administration.cancel_job, job.uuid)
    (cancelled,) = database.write(queue.lease_jobs, OWNER, 10)
    agents = FakeAgents()
    handler = BindHandler(database, agents, FakeConsumers(), RULES)
    event = handler.expire(cancelled, 'It was cancelled by an operator.')

    assert event is not None
    assert event.payload['succeeded'] is False
    assert states(database, uuids) == ['BindFailed'] * 2
    (first, *_) = database.read(arqs.list_arqs, Query(), ALL_PROJECTS)
    assert first.status_reason == 'It was cancelled by an operator.'
    for job in database.write(queue.lease_jobs, OWNER, 10, [OperationKind.RELEASE]):
        ReleaseHandler(database, agents).run(job)
    assert owners(database) == []


def test_cancel_release_keeps_failed_job_and_handle(database: Database) -> None:
    uuids = add_arqs(database, 1)
    requested = bindings(uuids, add_card(database, 1, needs_host=True))
    bind, event_job = NewJob(OperationKind.BIND), NewJob(OperationKind.NOVA_EVENT)
    job = database.write(binding.accept_bind, requested, ALL_PROJECTS, bind, OWNER)
    claimed = database.write(binding.claim_for_bind, job, uuids, None, event_job)
    event = complete_bind(database, claimed.job, uuids, event_job)
    database.write(queue.finish_job, event)
    database.write(release.delete_arqs, uuids, ALL_PROJECTS, True, None)
    (waiting,) = database.read(administration.list_jobs)

    database.write(administration.cancel_job, waiting.uuid)
    (cancelled,) = database.write(queue.lease_jobs, OWNER, 10)
    agents = FakeAgents()
    handler = ReleaseHandler(database, agents)
    assert handler.expire(cancelled, 'It was cancelled by an operator.') is None
    assert owners(database) == uuids
    assert states(database, uuids) == ['Deleting']
    (stored,) = database.read(administration.list_jobs)
    assert stored.state is JobState.FAILED
    # A failed release can only be retried. The retry releases the handle.
    with pytest.raises(OperationRefused):
        database.write(administration.cancel_job, waiting.uuid)
    database.write(administration.retry_job, waiting.uuid)
    (next_job,) = database.write(queue.lease_jobs, OWNER, 10)
    handler.run(next_job)
    assert owners(database) == []
    assert database.read(administration.list_jobs, [OperationKind.RELEASE]) == ()
