# SPDX-License-Identifier: Apache-2.0
"""Clean jobs: a unit is available after its agent has run all steps."""

import pytest

from cyborg_lite.conductor.cleaning import CleanHandler, CleaningService
from cyborg_lite.conductor.job_attempts import Handler, JobAttempts
from cyborg_lite.conductor.metrics import Metrics
from cyborg_lite.db import cleanings
from cyborg_lite.db.engine import Database
from cyborg_lite.db.jobs import administration, queue
from cyborg_lite.exceptions import CyborgError, DriverError, HostAway
from cyborg_lite.model.cleaning import (
    CleanOrder,
    CleanProgress,
    CleanProgressState,
    UnitSelection,
)
from cyborg_lite.model.jobs import JobType
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.interface import Agents
from tests.builders.rows import OWNER
from tests.builders.service_rows import mark_down
from tests.builders.unclean_units import (
    build_progress,
    count_clean_jobs,
    lease_clean_job,
    read_units,
    release_unit,
)
from tests.doubles.agents import FakeAgents

UNKNOWN, RUNNING = CleanProgressState.UNKNOWN, CleanProgressState.RUNNING
SUCCEEDED, FAILED = CleanProgressState.SUCCEEDED, CleanProgressState.FAILED


class ScriptedAgents(FakeAgents):
    """Agents that answer with the given progress."""

    def __init__(self, *answers: CleanProgress | CyborgError) -> None:
        super().__init__()
        self.answers = list(answers)
        self.orders: list[tuple[str, CleanOrder]] = []

    def read_cleaning(
        self, context: RequestContext, host: str, order: CleanOrder
    ) -> CleanProgress:
        return self._answer('read', order)

    def start_cleaning(
        self, context: RequestContext, host: str, order: CleanOrder, session: str
    ) -> CleanProgress:
        assert session == 'session-1'
        return self._answer('start', order)

    def abort_cleaning(
        self, context: RequestContext, host: str, order: CleanOrder
    ) -> CleanProgress:
        return self._answer('abort', order)

    def _answer(self, method: str, order: CleanOrder) -> CleanProgress:
        self.orders.append((method, order))
        answer = self.answers.pop(0)
        if isinstance(answer, CyborgError):
            raise answer
        return answer


def run(database: Database, agents: Agents) -> None:
    """Lease the clean job and run one attempt."""
    handlers: dict[str, Handler] = {JobType.CLEAN: CleanHandler(database, agents)}
    JobAttempts(database, handlers, Metrics()).run(lease_clean_job(database))


def cancel(database: Database) -> None:
    """Have an operator cancel the clean job."""
    (job,) = database.read(administration.list_jobs, [JobType.CLEAN])
    database.write(administration.cancel_job, job.uuid)


def run_cancelled(database: Database, agents: Agents) -> None:
    """Run the attempt that ends a cancelled job."""
    (job,) = database.write(queue.lease_jobs, OWNER, 9, [JobType.CLEAN])
    assert job.expired
    handlers: dict[str, Handler] = {JobType.CLEAN: CleanHandler(database, agents)}
    JobAttempts(database, handlers, Metrics()).run(job)


def test_clean_is_started_then_polled(database: Database) -> None:
    device = release_unit(database)
    agents = ScriptedAgents(
        build_progress(UNKNOWN),
        build_progress(RUNNING),
        build_progress(RUNNING, 'erase'),
        build_progress(SUCCEEDED, 'erase', 'verify'),
    )
    for _ in range(3):
        assert read_units(database, device)[0].state == 'dirty'
        run(database, agents)
    assert [method for method, _ in agents.orders] == ['read', 'start', 'read', 'read']
    assert agents.orders[-1][1].completed == ('erase',)
    assert len({order.number for _, order in agents.orders}) == 1
    assert read_units(database, device)[0].state == 'clean'
    assert count_clean_jobs(database) == 0


def test_restarted_agent_gets_completed_steps(database: Database) -> None:
    release_unit(database)
    restarted = build_progress(UNKNOWN)
    agents = ScriptedAgents(
        build_progress(RUNNING, 'erase'), restarted, build_progress(RUNNING)
    )
    run(database, agents)
    run(database, agents)
    method, order = agents.orders[-1]
    assert (method, order.completed) == ('start', ('erase',))


def test_failed_step_withholds_unit(database: Database) -> None:
    device = release_unit(database)
    run(database, ScriptedAgents(build_progress(FAILED, reason='medium error')))
    (unit,) = read_units(database, device)
    assert (unit.state, unit.reason) == ('clean_failed', 'medium error')
    service = CleaningService(database)
    assert service.retry(UnitSelection(device), 'Jo') == 1
    run(database, ScriptedAgents(build_progress(SUCCEEDED, 'erase', 'verify')))
    first, second = service.list(device).cleanings
    assert (first.state, first.actor, second.state) == ('succeeded', 'Jo', 'failed')


@pytest.mark.parametrize(
    'error', [HostAway(host='compute-1'), DriverError(reason='stale')]
)
def test_error_of_agent_postpones_clean(database: Database, error: CyborgError) -> None:
    device = release_unit(database)
    run(database, ScriptedAgents(error))
    (job,) = database.read(administration.list_jobs, [JobType.CLEAN])
    assert job.last_error == error.text
    assert read_units(database, device)[0].state == 'dirty'


def test_host_down_is_not_called(database: Database) -> None:
    release_unit(database)
    mark_down(database, 'compute-1')
    agents = ScriptedAgents()
    run(database, agents)
    assert agents.orders == []


@pytest.mark.parametrize(
    ('answer', 'state'),
    [
        (build_progress(UNKNOWN), 'clean_failed'),
        (build_progress(FAILED, reason='aborted'), 'clean_failed'),
        (build_progress(SUCCEEDED, 'erase', 'verify'), 'clean'),
        (build_progress(RUNNING), 'dirty'),
        (HostAway(host='compute-1'), 'dirty'),
    ],
)
def test_cancelled_clean_ends_unless_step_runs(
    database: Database, answer: CleanProgress | CyborgError, state: str
) -> None:
    device = release_unit(database)
    run(database, ScriptedAgents(build_progress(RUNNING)))
    cancel(database)
    run_cancelled(database, ScriptedAgents(answer))
    assert read_units(database, device)[0].state == state
    assert count_clean_jobs(database) == (1 if state == 'dirty' else 0)
    if state == 'dirty':
        run(database, ScriptedAgents(build_progress(RUNNING)))
    if state == 'clean_failed':
        device_units = CleaningService(database)
        assert device_units.accept(UnitSelection(device), 'Jo') == 1
        assert database.read(cleanings.list_unclean_units) == ()
