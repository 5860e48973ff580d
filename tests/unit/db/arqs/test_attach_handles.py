# SPDX-License-Identifier: Apache-2.0
"""Attach handles that ARQs own: data for the host, cleaning and rebuilding."""

from dataclasses import dataclass, field, replace
from uuid import uuid4

import pytest
from sqlalchemy import select

from cyborg_lite.db.arqs import attach_handles, binding, release
from cyborg_lite.db.bitstreams import programming
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, AttachHandle
from cyborg_lite.db.inventory import handles
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.arqs import BindCancelled
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.jobs import Job, NewJob, NovaEventPayload
from cyborg_lite.model.jobs import read_bind_generation as read_generation
from cyborg_lite.model.operations import OperationKind
from tests.builders.bind_jobs import (
    ANY_PROJECT,
    FAILED_EVENT_JOB,
    accept_bind,
    claim_for_bind,
    complete_bind,
)
from tests.builders.bound_arqs import create_bound_arqs
from tests.builders.rows import (
    HOST,
    OWNER,
    add_arqs,
    add_card,
    bindings,
    owners,
    states,
)
from tests.builders.table_rows import change_rows, read_column


def test_list_handles_of_arqs_returns_given_arqs_only(database: Database) -> None:
    _first, second = create_bound_arqs(database, 2)
    (handle,) = database.read(attach_handles.list_handles_of_arqs, [second])
    assert (handle.arq_uuid, handle.hostname) == (second, HOST)
    assert (handle.needs_host, handle.preparing, handle.generation) == (True, False, 1)
    assert handle.load is None


def test_list_handles_to_rebuild_returns_provisioning_only(database: Database) -> None:
    uuids = create_bound_arqs(database, 2)
    assert database.read(attach_handles.list_handles_to_rebuild, HOST) == ()
    change_rows(database, Arq, state='Provisioning')
    handles = database.read(attach_handles.list_handles_to_rebuild, HOST)
    assert sorted(handle.arq_uuid for handle in handles) == sorted(uuids)
    assert database.read(attach_handles.list_handles_to_rebuild, 'compute-2') == ()


@pytest.mark.parametrize('column', ['in_use', 'missing', 'preparing'])
def test_free_excludes_used_missing_and_preparing(
    database: Database, column: str
) -> None:
    add_card(database, 2)
    free = select(AttachHandle.id).where(handles.FREE)
    first, second = read_column(database, free)
    change_rows(database, AttachHandle, AttachHandle.id == first, **{column: True})
    assert read_column(database, free) == [second]


# --- statements of an earlier bind, after its ARQ was unbound and bound again -------


FAILURE = DriverError(reason='no such type')
EVENT = FAILED_EVENT_JOB


@dataclass
class Rebound:
    """An ARQ that is bound, unbound and bound again to another card and instance."""

    database: Database
    needs_host: bool = True
    instance: str = field(default_factory=lambda: str(uuid4()))

    def __post_init__(self) -> None:
        self.uuids = add_arqs(self.database, 1)
        self.cards = [
            add_card(self.database, 1, needs_host=self.needs_host) for _ in range(2)
        ]

    def accept(self, card: int) -> Job:
        instance = self.instance if card else str(uuid4())
        requested = bindings(self.uuids, self.cards[card], instance)
        return accept_bind(self.database, requested)

    def claim(self, job: Job) -> Job:
        return claim_for_bind(self.database, job, self.uuids).job

    def fail(self, job: Job) -> Job | None:
        return self.database.write(binding.fail_bind, job, self.uuids, FAILURE, EVENT)

    def unbind(self) -> None:
        self.database.write(release.unbind_arqs, self.uuids, ANY_PROJECT, None)

    def bind_again(self) -> tuple[Job, Job]:
        """Return the job of the first bind, and that of the second, which claims."""
        first = self.accept(0)
        self.unbind()
        second = self.accept(1)
        return first, self.claim(second)

    @property
    def handle(self) -> AllocatedHandle:
        (handle,) = self.database.read(attach_handles.list_handles_of_arqs, self.uuids)
        return handle

    def check_second_bind_goes_on(self, job: Job) -> None:
        handle = self.handle
        assert handle.preparing
        provider = select(Arq.device_rp_uuid).where(Arq.uuid == handle.arq_uuid)
        assert read_column(self.database, provider) == [self.cards[1]]
        complete_bind(self.database, job, self.uuids)
        assert states(self.database, self.uuids) == ['Bound']


def test_accept_bind_raises_generation(database: Database) -> None:
    rebound = Rebound(database)
    generations = []
    for card in (0, 1, 0):
        generations.append(read_generation(rebound.accept(card).payload))
        rebound.unbind()
    assert generations == [1, 2, 3]


def test_accept_bind_generation_exceeds_all_arqs(database: Database) -> None:
    """The number is new for all ARQs of the bind."""
    rebound = Rebound(database)
    rebound.accept(0)
    rebound.unbind()
    rebound.uuids += add_arqs(database, 1)
    assert read_generation(rebound.accept(1).payload) == 2


@pytest.mark.parametrize('needs_host', [True, False])
def test_claim_of_earlier_bind_raises(database: Database, needs_host: bool) -> None:
    rebound = Rebound(database, needs_host)
    first = rebound.accept(0)
    rebound.unbind()
    second = rebound.accept(1)
    with pytest.raises(BindCancelled):
        rebound.claim(first)
    assert states(database, rebound.uuids) == ['BindStarted']
    assert owners(database) == []
    rebound.claim(second)
    assert owners(database) == rebound.uuids


def test_list_claimed_handles_of_earlier_bind_raises(database: Database) -> None:
    rebound = Rebound(database)
    rebound.bind_again()
    with pytest.raises(BindCancelled):
        database.read(binding.list_claimed_handles, rebound.uuids, 1)
    assert database.read(binding.list_claimed_handles, rebound.uuids, 2)


def test_list_regions_of_earlier_bind_is_empty(database: Database) -> None:
    """The earlier job would load its bitstream into the other card."""
    rebound = Rebound(database)
    rebound.bind_again()
    assert database.read(programming.list_regions_of_arqs, rebound.uuids, 1) == ()
    assert database.read(programming.list_regions_of_arqs, rebound.uuids, 2)


def test_complete_earlier_bind_raises(database: Database) -> None:
    rebound = Rebound(database)
    first, second = rebound.bind_again()
    with pytest.raises(BindCancelled):
        complete_bind(database, first, rebound.uuids)
    assert states(database, rebound.uuids) == ['BindStarted']
    rebound.check_second_bind_goes_on(second)


def test_fail_earlier_bind_changes_nothing(database: Database) -> None:
    rebound = Rebound(database)
    first, second = rebound.bind_again()
    assert rebound.fail(first) is None
    assert states(database, rebound.uuids) == ['BindStarted']
    rebound.check_second_bind_goes_on(second)


def test_fail_earlier_bind_keeps_bound_handle(database: Database) -> None:
    rebound = Rebound(database, needs_host=False)
    first, _event = rebound.bind_again()
    rebound.fail(first)
    assert states(database, rebound.uuids) == ['Bound']
    assert owners(database) == rebound.uuids


def test_fail_earlier_bind_releases_its_own_handle(database: Database) -> None:
    """The later bind waits for that."""
    rebound = Rebound(database)
    first = rebound.claim(rebound.accept(0))
    rebound.unbind()
    second = rebound.accept(1)
    rebound.fail(first)
    assert states(database, rebound.uuids) == ['BindStarted']
    (job,) = database.write(queue.lease_jobs, OWNER, 10)
    assert job.type == OperationKind.RELEASE
    database.write(release.record_release, job, rebound.handle)
    rebound.check_second_bind_goes_on(rebound.claim(second))


def test_fail_later_bind_keeps_handle_of_earlier(database: Database) -> None:
    """The host still prepares it; a release must not cross the preparation."""
    rebound = Rebound(database)
    rebound.claim(rebound.accept(0))
    rebound.unbind()
    second = rebound.accept(1)
    rebound.fail(second)
    assert states(database, rebound.uuids) == ['BindFailed']
    assert rebound.handle.preparing
    counts = {count.type for count in database.read(queue.count_jobs)}
    assert OperationKind.RELEASE not in counts


@pytest.mark.parametrize('succeeded', [True, False])
def test_events_of_earlier_bind_are_none(database: Database, succeeded: bool) -> None:
    """Also if the ARQ is bound to the same instance again."""
    rebound = Rebound(database, needs_host=False)
    rebound.claim(rebound.accept(1))
    rebound.unbind()
    job = rebound.claim(rebound.accept(1))
    if not succeeded:
        change_rows(database, Arq, state='BindFailed')
    event = NovaEventPayload(rebound.instance, tuple(rebound.uuids), succeeded, 1)
    assert job.type == OperationKind.NOVA_EVENT
    assert database.read(binding.list_arqs_by_outcome, event) == ()
    for generation in (0, 2):
        current = replace(event, generation=generation)
        arqs = database.read(binding.list_arqs_by_outcome, current)
        assert arqs == tuple(rebound.uuids)


def test_bind_job_without_generation_still_runs(database: Database) -> None:
    """A conductor of an earlier release has written it."""
    rebound = Rebound(database)
    job = rebound.claim(replace(rebound.accept(0), payload={}))
    complete_bind(database, job, rebound.uuids)
    assert states(database, rebound.uuids) == ['Bound']


def test_bind_job_without_generation_releases_handles(database: Database) -> None:
    rebound = Rebound(database, needs_host=False)
    job = replace(rebound.accept(0), payload={})
    rebound.claim(job)
    change_rows(database, Arq, state='BindStarted')
    rebound.fail(job)
    assert states(database, rebound.uuids) == ['BindFailed']
    assert owners(database) == []


# --- releases ---


def _release_and_claim_again(rebound: Rebound) -> tuple[AllocatedHandle, Job, Job]:
    """Have both binds claim the same handle, which is released between them.

    :returns: the handle of the first bind, its release job, and the second bind
    """
    database = rebound.database
    first = rebound.claim(rebound.accept(0))
    event = complete_bind(database, first, rebound.uuids)
    database.write(queue.finish_job, event)
    rebound.unbind()
    (job,) = database.write(queue.lease_jobs, OWNER, 10)
    stale = rebound.handle
    database.write(release.record_release, job, stale)
    rebound.cards[1] = rebound.cards[0]
    second = rebound.claim(rebound.accept(1))
    database.write(queue.add_job, NewJob(OperationKind.RELEASE, job.payload))
    (next_job,) = database.write(queue.lease_jobs, OWNER, 10, (OperationKind.RELEASE,))
    return stale, next_job, second


def test_record_release_of_handle_claimed_again_frees_nothing(
    database: Database,
) -> None:
    rebound = Rebound(database)
    stale, job, second = _release_and_claim_again(rebound)
    database.write(release.record_release, job, stale)
    assert owners(database) == rebound.uuids
    rebound.check_second_bind_goes_on(second)


def test_release_failure_after_release_marks_nothing(database: Database) -> None:
    """Another conductor has released the handle, and the ARQ is unbound and clean."""
    rebound = Rebound(database)
    stale, _job, second = _release_and_claim_again(rebound)
    assert rebound.fail(second) is not None
    rebound.unbind()
    before = database.read(queue.count_jobs)
    database.write(release.record_release_failure, stale, FAILURE)
    assert states(database, rebound.uuids) == ['Unbound']
    assert database.read(queue.count_jobs) == before
