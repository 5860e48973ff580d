# SPDX-License-Identifier: Apache-2.0
"""Random operations of clients, conductors and hosts on each database.

A reference model in plain Python has the state and the handle of each ARQ. After every
operation, allowed or not, the database must be equal to the model.
"""

from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import delete

from cyborg_lite.db.arqs import attach_handles, binding, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, AttachHandle, Deployable, Device
from cyborg_lite.db.core.tables import Job as JobRow
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.arqs import (
    ArqNotFound,
    ArqStateConflict,
    BindCancelled,
    HandlesContended,
    InstanceHasArqs,
    NoFreeHandle,
)
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.operations import OperationKind
from tests.builders.bind_jobs import (
    ANY_PROJECT,
    FAILED_EVENT_JOB,
    accept_bind,
    claim_for_bind,
    complete_bind,
)
from tests.builders.rows import OWNER, add_arqs, add_card, bindings, owners, states

FAILURE: Final = DriverError(reason='used by an instance')
CAPACITY: Final = 3
INSTANCES: Final = [str(uuid4()) for _ in range(2)]

arq_numbers = st.lists(st.integers(0, 7), min_size=1, max_size=3, unique=True)


@dataclass
class ArqModel:
    """ARQ in the reference model."""

    state: str = 'Initial'
    instance: str | None = None
    card: str | None = None
    allocated_card: str | None = None  # provider of the allocated handle
    preparing: bool = False
    generation: int = 0  # of the last accepted bind
    claimed_by: int = 0  # generation of the bind that claimed the handle

    @property
    def is_unclean(self) -> bool:
        """Return True if the host must clean the handle."""
        return self.state != 'Bound' and not self.preparing


@dataclass
class StartedBind:
    """Bind that a conductor has accepted or claimed."""

    job: Job
    uuids: list[str]
    generation: int

    def is_current(self, arq: ArqModel) -> bool:
        """Return True if the ARQ is being bound by this bind."""
        return (arq.state, arq.generation) == ('BindStarted', self.generation)


class ArqStateMachine(RuleBasedStateMachine):
    """Random operations through the database functions that the conductor calls."""

    database: Database  # set by the test

    def __init__(self) -> None:
        super().__init__()
        self.database.write(_clear)
        self.plain = add_card(self.database, CAPACITY)
        self.on_host = add_card(self.database, CAPACITY, needs_host=True)
        self.arqs: dict[str, ArqModel] = {}
        self.accepted: list[StartedBind] = []
        self.claimed: list[StartedBind] = []

    def pick(self, numbers: list[int]) -> list[str]:
        uuids = list(self.arqs)
        return sorted({uuids[number % len(uuids)] for number in numbers})

    def free(self, card: str) -> int:
        allocated = [arq for arq in self.arqs.values() if arq.allocated_card == card]
        return CAPACITY - len(allocated)

    # --- clients ---

    @rule(number=st.integers(1, 3))
    def create(self, number: int) -> None:
        for uuid in add_arqs(self.database, number):
            self.arqs[uuid] = ArqModel()

    @precondition(lambda self: self.arqs)
    @rule(numbers=arq_numbers, instance=st.sampled_from(INSTANCES), host=st.booleans())
    def bind(self, numbers: list[int], instance: str, host: bool) -> None:
        uuids = self.pick(numbers)
        card = self.on_host if host else self.plain
        binding_by_arq = bindings(uuids, card, instance)
        instance_arqs = {u for u, arq in self.arqs.items() if arq.instance == instance}
        ready = all(self.arqs[u].state in ('Initial', 'Unbound') for u in uuids)
        earlier_arqs = instance_arqs - set(uuids)
        if any(self.arqs[uuid].state != 'BindFailed' for uuid in earlier_arqs):
            with pytest.raises(InstanceHasArqs):
                accept_bind(self.database, binding_by_arq)
        elif not ready:
            with pytest.raises(ArqStateConflict):
                accept_bind(self.database, binding_by_arq)
        else:
            job = accept_bind(self.database, binding_by_arq)
            self.mark_deleted(sorted(earlier_arqs))
            generation = max(self.arqs[uuid].generation for uuid in uuids) + 1
            self.accepted.append(StartedBind(job, uuids, generation))
            for uuid in uuids:
                arq = self.arqs[uuid]
                arq.state, arq.instance, arq.card = 'BindStarted', instance, card
                arq.generation = generation

    @precondition(lambda self: self.arqs)
    @rule(numbers=arq_numbers)
    def unbind(self, numbers: list[int]) -> None:
        uuids = self.pick(numbers)
        if any(self.arqs[uuid].state == 'Deleting' for uuid in uuids):
            with pytest.raises(ArqStateConflict):
                self.database.write(release.unbind_arqs, uuids, ANY_PROJECT, None)
            return
        self.database.write(release.unbind_arqs, uuids, ANY_PROJECT, None)
        for uuid in uuids:
            arq = self.arqs[uuid]
            if arq.state not in ('Initial', 'UnbindFailed'):
                arq.state, arq.instance = 'Unbound', None
                self.free_passthrough(arq)

    @precondition(lambda self: self.arqs)
    @rule(numbers=arq_numbers)
    def delete(self, numbers: list[int]) -> None:
        uuids, unknown = self.pick(numbers), str(uuid4())
        missing = self.database.write(
            release.delete_arqs, [*uuids, unknown], ANY_PROJECT, True, None
        )
        deleting = {u for u in uuids if self.arqs[u].state == 'Deleting'}
        assert set(missing) == {unknown, *deleting}
        self.mark_deleted(uuids)

    @rule(instance=st.sampled_from(INSTANCES))
    def delete_instance(self, instance: str) -> None:
        self.database.write(
            release.delete_arqs_of_instance, instance, ANY_PROJECT, None
        )
        self.mark_deleted(
            [uuid for uuid, arq in self.arqs.items() if arq.instance == instance]
        )

    @rule()
    def unbind_unknown(self) -> None:
        with pytest.raises(ArqNotFound):
            self.database.write(release.unbind_arqs, [str(uuid4())], ANY_PROJECT, None)

    def mark_deleted(self, uuids: list[str]) -> None:
        for uuid in uuids:
            arq = self.arqs[uuid]
            self.free_passthrough(arq)
            arq.state, arq.instance = 'Deleting', None
            if arq.allocated_card is None:
                del self.arqs[uuid]

    def free_passthrough(self, arq: ArqModel) -> None:
        if arq.allocated_card == self.plain:
            arq.allocated_card = None

    # --- conductors ---

    @precondition(lambda self: self.accepted)
    @rule(number=st.integers(0, 7))
    def claim(self, number: int) -> None:
        bind = self.accepted.pop(number % len(self.accepted))
        bind_arqs = [self.arqs.get(uuid, ArqModel('gone')) for uuid in bind.uuids]
        expected = self.expected_error(bind, bind_arqs)
        if expected is not None:
            with pytest.raises(expected):
                claim_for_bind(self.database, bind.job, bind.uuids)
            if expected is HandlesContended:
                self.accepted.append(bind)
            else:
                self.fail(bind)
            return
        claimed = claim_for_bind(self.database, bind.job, bind.uuids)
        for arq in bind_arqs:
            arq.allocated_card = arq.card
            arq.preparing = arq.card == self.on_host
            arq.claimed_by = bind.generation
        if claimed.handles:
            self.claimed.append(bind)
            return
        self.database.write(queue.finish_job, claimed.job)
        for arq in bind_arqs:
            arq.state = 'Bound'

    def expected_error(
        self, bind: StartedBind, bind_arqs: list[ArqModel]
    ) -> type[CyborgError] | None:
        if not all(map(bind.is_current, bind_arqs)):
            return BindCancelled
        if any(arq.allocated_card is not None for arq in bind_arqs):
            return HandlesContended
        card = bind_arqs[0].card
        assert card is not None
        if self.free(card) >= len(bind_arqs):
            return None
        cleaned = [
            arq
            for arq in self.arqs.values()
            if arq.allocated_card == card and arq.is_unclean
        ]
        enough = self.free(card) + len(cleaned) >= len(bind_arqs)
        return HandlesContended if enough else NoFreeHandle

    def fail(self, bind: StartedBind) -> None:
        failure = FAILURE, FAILED_EVENT_JOB
        event = self.database.write(binding.fail_bind, bind.job, bind.uuids, *failure)
        if event is not None:
            self.database.write(queue.finish_job, event)
        for uuid in bind.uuids:
            if uuid in self.arqs:
                arq = self.arqs[uuid]
                if arq.claimed_by == bind.generation:
                    arq.preparing = False
                    self.free_passthrough(arq)
                if bind.is_current(arq):
                    arq.state = 'BindFailed'

    # --- hosts ---

    @precondition(lambda self: self.claimed)
    @rule(number=st.integers(0, 7), succeeds=st.booleans())
    def prepare(self, number: int, succeeds: bool) -> None:
        bind = self.claimed.pop(number % len(self.claimed))
        bind_arqs = [self.arqs[uuid] for uuid in bind.uuids]
        if not succeeds:
            self.fail(bind)
        elif not all(map(bind.is_current, bind_arqs)):
            with pytest.raises(BindCancelled):
                complete_bind(self.database, bind.job, bind.uuids)
            self.fail(bind)
        else:
            event = complete_bind(self.database, bind.job, bind.uuids)
            self.database.write(queue.finish_job, event)
            for arq in bind_arqs:
                arq.state, arq.preparing = 'Bound', False

    @rule(succeeds=st.booleans())
    def clean(self, succeeds: bool) -> None:
        for job in self.database.write(queue.lease_jobs, OWNER, 1):
            if job.type != OperationKind.RELEASE:
                self.database.write(queue.finish_job, job)
                continue
            handle = self.database.read(
                attach_handles.find_unclean_handle, job.payload['handle_uuid']
            )
            if handle is None:
                self.database.write(queue.finish_job, job)
                continue
            arq = self.arqs[handle.arq_uuid]
            assert arq.state != 'Bound'
            assert not arq.preparing
            if not succeeds:
                self.database.write(release.record_release_failure, handle, FAILURE)
                self.database.write(queue.postpone_job, job, 0, 'used by an instance')
                arq.state = 'UnbindFailed' if arq.state == 'Unbound' else arq.state
                continue
            self.database.write(release.record_release, job, handle)
            arq.allocated_card = None
            if arq.state == 'Deleting':
                del self.arqs[handle.arq_uuid]
            elif arq.state == 'UnbindFailed':
                arq.state = 'Unbound'

    # --- after each operation ---

    @invariant()
    def check_database(self) -> None:
        uuids = list(self.arqs)
        expected = [self.arqs[uuid].state for uuid in uuids]
        assert states(self.database, uuids) == expected
        allocated = sorted(u for u, arq in self.arqs.items() if arq.allocated_card)
        assert owners(self.database) == allocated


def _clear(session: Any) -> None:
    for table in (JobRow, AttachHandle, Arq, Deployable, Device):
        session.execute(delete(table))


def test_random_operations_match_reference_model(database: Database) -> None:
    machine = type('DatabaseStateMachine', (ArqStateMachine,), {'database': database})
    # The number of steps, not their time, bounds the test.
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
