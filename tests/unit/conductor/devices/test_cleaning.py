# SPDX-License-Identifier: Apache-2.0
"""Clean jobs: a unit is available after its agent has run all steps."""

from uuid import uuid4

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.conductor.devices.cleaning import CleanHandler, CleaningService
from cyborg_lite.conductor.jobs.operations import OperationService
from cyborg_lite.conductor.jobs.runner import Handler, JobAttempts
from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Deployable, Device
from cyborg_lite.db.core.tables import Job as JobRow
from cyborg_lite.db.devices import cleanings
from cyborg_lite.db.jobs import administration, operations, queue
from cyborg_lite.errors.arqs import UnitAllocated
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.devices import CleaningRefused
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.errors.jobs import OperationRefused
from cyborg_lite.model.devices.cleaning import (
    CleanOrder,
    CleanProgress,
    CleanProgressState,
    UnitSelection,
)
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import LATEST_FIRST
from cyborg_lite.rpc.context import RequestContext, daemon_context
from cyborg_lite.rpc.interface import Agents
from tests.builders.rows import OWNER, PROJECT
from tests.builders.service_rows import mark_down
from tests.builders.unclean_units import (
    build_progress,
    count_clean_jobs,
    count_reserved,
    lease_clean_job,
    read_units,
    release_unit,
)
from tests.doubles.agents import FakeAgents
from tests.doubles.consumers import FakeConsumers

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


def find_provider(session: Session, device: str) -> str:
    """Return the uuid of the resource provider of a device."""
    statement = select(Deployable.rp_uuid).join(Device).where(Device.uuid == device)
    return session.scalars(statement).one() or ''


def make_jobs_old(session: Session) -> None:
    """Make all jobs an hour older."""
    session.execute(update(JobRow).values(created_at=JobRow.created_at - 3_600_000))


def run(
    database: Database,
    agents: Agents,
    consumers: FakeConsumers | None = None,
    job: Job | None = None,
) -> None:
    """Run one attempt at the cleaning job, which is leased now unless it is given."""
    handler = CleanHandler(database, agents, consumers or FakeConsumers())
    handlers: dict[str, Handler] = {OperationKind.CLEANING: handler}
    JobAttempts(database, handlers, Metrics()).run(job or lease_clean_job(database))


def cancel(database: Database) -> None:
    """Have an operator cancel the cleaning job."""
    (job,) = database.read(administration.list_jobs, [OperationKind.CLEANING])
    database.write(administration.cancel_job, job.uuid)


def test_failed_step_withholds_unit(database: Database) -> None:
    device = release_unit(database)
    run(database, ScriptedAgents(build_progress(FAILED, reason='medium error')))
    (unit,) = read_units(database, device)
    assert (unit.state, unit.reason) == ('clean_failed', 'medium error')
    service = CleaningService(database)
    assert service.retry(daemon_context(), UnitSelection(device), 'Jo')
    run(database, ScriptedAgents(build_progress(SUCCEEDED, 'erase', 'verify')))
    first, second = service.list(device, LATEST_FIRST).cleanings
    assert (first.state, first.actor, second.state) == ('succeeded', 'Jo', 'failed')


def test_operation_of_failed_clean_is_retried(database: Database) -> None:
    device = release_unit(database)
    failure = build_progress(FAILED, reason='medium error')
    run(database, ScriptedAgents(failure))
    cleaning = CleaningService(database)
    uuid = cleaning.retry(daemon_context(), UnitSelection(device), 'Jo')
    run(database, ScriptedAgents(failure))
    service = OperationService(database, lambda: None, {'cleaning': cleaning.restart})
    service.retry(RequestContext(user_id='eve', is_admin=True), uuid)
    run(database, ScriptedAgents(build_progress(SUCCEEDED, 'erase')))
    assert database.read(operations.read_operation, uuid).state == 'succeeded'
    last, *_ = cleaning.list(device, LATEST_FIRST).cleanings
    assert (last.state, last.actor) == ('succeeded', 'eve')
    with pytest.raises(OperationRefused, match='has ended'):
        service.retry(daemon_context(), uuid)


def test_retry_of_units_declared_clean_is_refused(database: Database) -> None:
    device = release_unit(database)
    failure = build_progress(FAILED, reason='medium error')
    run(database, ScriptedAgents(failure))
    cleaning = CleaningService(database)
    uuid = cleaning.retry(daemon_context(), UnitSelection(device), 'Jo')
    run(database, ScriptedAgents(failure))
    cleaning.accept(UnitSelection(device), 'Jo')
    service = OperationService(database, lambda: None, {'cleaning': cleaning.restart})
    with pytest.raises(CleaningRefused):
        service.retry(daemon_context(), uuid)
    assert database.read(operations.read_operation, uuid).state == 'failed'


def test_unit_with_unknown_consumer_is_not_cleaned(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """A restored database has the cleaning job of an earlier use."""
    device = release_unit(database)
    (unit,) = read_units(database, device)
    provider = database.read(find_provider, device)
    consumers, guest = FakeConsumers(), str(uuid4())
    consumers.allocate(guest, [provider], PROJECT)
    for _ in range(2):
        agents = ScriptedAgents(build_progress(UNKNOWN))
        run(database, agents, consumers)
        assert [method for method, _ in agents.orders] == ['read']
    assert read_units(database, device)[0].state == 'dirty'
    assert count_reserved(database) == [1]
    (job,) = database.read(administration.list_jobs, [OperationKind.CLEANING])
    assert guest in job.last_error
    # An instance that Nova deletes keeps its allocation for a moment.
    assert 'does not clean' not in caplog.text

    database.write(make_jobs_old)
    agents = ScriptedAgents(*[build_progress(UNKNOWN)] * 2)
    handler = CleanHandler(database, agents, consumers)
    late = lease_clean_job(database)
    for _ in range(2):
        with pytest.raises(UnitAllocated):
            handler.run(late)
    (warning,) = [r for r in caplog.records if 'does not clean' in r.getMessage()]
    assert warning.levelname == 'WARNING'
    for name in ('compute-1', unit.key, guest, provider):
        assert name in warning.getMessage()

    consumers.forget(guest)
    agents = ScriptedAgents(build_progress(UNKNOWN), build_progress(RUNNING))
    CleanHandler(database, agents, consumers).run(late)
    assert [method for method, _ in agents.orders] == ['read', 'start']


def test_unit_is_not_cleaned_without_placement(database: Database) -> None:
    device = release_unit(database)
    consumers = FakeConsumers()
    consumers.is_down = True
    agents = ScriptedAgents(build_progress(UNKNOWN))
    run(database, agents, consumers)
    assert agents.orders[-1][0] == 'read'
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
    (job,) = database.write(queue.lease_jobs, OWNER, 9, [OperationKind.CLEANING])
    assert job.expired
    run(database, ScriptedAgents(answer), job=job)
    assert read_units(database, device)[0].state == state
    assert count_clean_jobs(database) == (1 if state == 'dirty' else 0)
    if state == 'dirty':
        run(database, ScriptedAgents(build_progress(RUNNING)))
    if state == 'clean_failed':
        device_units = CleaningService(database)
        assert device_units.accept(UnitSelection(device), 'Jo') == 1
        assert database.read(cleanings.list_unclean_units) == ()
