# SPDX-License-Identifier: Apache-2.0
"""Random walks of clients, conductors and hosts against each database and an oracle.

The oracle is a page of plain Python that knows no SQL: what state each request is in,
and what it holds. After every step, legal or not, the database must agree with it.
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

from cyborg_lite.db import binding, handles, jobs, release
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Arq, AttachHandle, Deployable, Device, Job
from cyborg_lite.exceptions import (
    ArqNotFound,
    ArqStateConflict,
    BindCancelled,
    CyborgError,
    HandlesContended,
    InstanceHasArqs,
    NoFreeHandle,
)
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.jobs import Job as Held
from cyborg_lite.model.jobs import Kind, NewJob
from tests.fakes.rows import OWNER, add_arqs, add_card, bindings, owners, states

EVERYBODY: Final = Scope(project_id=None)
BIND: Final = NewJob(Kind.BIND)
TOLD: Final = NewJob(Kind.NOVA_EVENT)
CAPACITY: Final = 3
INSTANCES: Final = [str(uuid4()) for _ in range(2)]

some = st.lists(st.integers(0, 7), min_size=1, max_size=3, unique=True)


@dataclass
class Request:
    """What the oracle knows of one request."""

    state: str = 'Initial'
    instance: str | None = None
    card: str | None = None
    holds: str | None = None  # the card whose handle it holds
    preparing: bool = False

    @property
    def left(self) -> bool:
        """What it holds is to be cleaned."""
        return self.state not in ('Initial', 'BindStarted', 'Bound')


@dataclass
class Bind:
    job: Held
    uuids: list[str]


class Walk(RuleBasedStateMachine):
    """Whoever acts, acts through the functions that the conductor calls."""

    database: Database  # of the test that runs the walk

    def __init__(self) -> None:
        super().__init__()
        self.database.write(_clear)
        self.plain = add_card(self.database, CAPACITY)
        self.on_host = add_card(self.database, CAPACITY, needs_host=True)
        self.requests: dict[str, Request] = {}
        self.accepted: list[Bind] = []
        self.claimed: list[Bind] = []

    def pick(self, numbers: list[int]) -> list[str]:
        known = list(self.requests)
        return sorted({known[number % len(known)] for number in numbers})

    def free(self, card: str) -> int:
        held = [one for one in self.requests.values() if one.holds == card]
        return CAPACITY - len(held)

    # --- clients ---

    @rule(number=st.integers(1, 3))
    def create(self, number: int) -> None:
        for uuid in add_arqs(self.database, number):
            self.requests[uuid] = Request()

    @precondition(lambda self: self.requests)
    @rule(numbers=some, instance=st.sampled_from(INSTANCES), host=st.booleans())
    def bind(self, numbers: list[int], instance: str, host: bool) -> None:
        uuids = self.pick(numbers)
        card = self.on_host if host else self.plain
        wanted = bindings(uuids, card, instance)
        there = {u for u, one in self.requests.items() if one.instance == instance}
        ready = all(self.requests[u].state in ('Initial', 'Unbound') for u in uuids)
        if there - set(uuids):
            with pytest.raises(InstanceHasArqs):
                self.database.write(binding.accept, wanted, EVERYBODY, BIND, OWNER)
        elif not ready:
            with pytest.raises(ArqStateConflict):
                self.database.write(binding.accept, wanted, EVERYBODY, BIND, OWNER)
        else:
            job = self.database.write(binding.accept, wanted, EVERYBODY, BIND, OWNER)
            self.accepted.append(Bind(job, uuids))
            for uuid in uuids:
                one = self.requests[uuid]
                one.state, one.instance, one.card = 'BindStarted', instance, card

    @precondition(lambda self: self.requests)
    @rule(numbers=some)
    def unbind(self, numbers: list[int]) -> None:
        uuids = self.pick(numbers)
        if any(self.requests[uuid].state == 'Deleting' for uuid in uuids):
            with pytest.raises(ArqStateConflict):
                self.database.write(release.unbind, uuids, EVERYBODY, None)
            return
        self.database.write(release.unbind, uuids, EVERYBODY, None)
        for uuid in uuids:
            one = self.requests[uuid]
            if one.state not in ('Initial', 'UnbindFailed'):
                one.state, one.instance = 'Unbound', None
                self.let_go(one)

    @precondition(lambda self: self.requests)
    @rule(numbers=some)
    def delete(self, numbers: list[int]) -> None:
        uuids, unknown = self.pick(numbers), str(uuid4())
        missing = self.database.write(
            release.delete_listed, [*uuids, unknown], EVERYBODY, True, None
        )
        already = {u for u in uuids if self.requests[u].state == 'Deleting'}
        assert set(missing) == {unknown, *already}
        self.deleted(uuids)

    @rule(instance=st.sampled_from(INSTANCES))
    def delete_instance(self, instance: str) -> None:
        self.database.write(release.delete_of_instance, instance, EVERYBODY, None)
        self.deleted([u for u, o in self.requests.items() if o.instance == instance])

    @rule()
    def unbind_an_unknown_one(self) -> None:
        with pytest.raises(ArqNotFound):
            self.database.write(release.unbind, [str(uuid4())], EVERYBODY, None)

    def deleted(self, uuids: list[str]) -> None:
        for uuid in uuids:
            one = self.requests[uuid]
            self.let_go(one)
            one.state, one.instance = 'Deleting', None
            if one.holds is None:
                del self.requests[uuid]

    def let_go(self, one: Request) -> None:
        if one.holds == self.plain:
            one.holds = None

    # --- conductors ---

    @precondition(lambda self: self.accepted)
    @rule(number=st.integers(0, 7))
    def claim(self, number: int) -> None:
        bind = self.accepted.pop(number % len(self.accepted))
        known = [self.requests.get(uuid, Request('gone')) for uuid in bind.uuids]
        expected = self.verdict(known)
        if expected is not None:
            with pytest.raises(expected):
                self.database.write(binding.claim, bind.job, bind.uuids, None, TOLD)
            if expected is HandlesContended:
                self.accepted.append(bind)
            else:
                self.fail(bind)
            return
        claimed = self.database.write(binding.claim, bind.job, bind.uuids, None, TOLD)
        for one in known:
            one.holds = one.card
            one.preparing = one.card == self.on_host
        if claimed.handles:
            self.claimed.append(bind)
            return
        self.database.write(jobs.finish, claimed.job)
        for one in known:
            one.state = 'Bound'

    def verdict(self, known: list[Request]) -> type[CyborgError] | None:
        if any(one.state != 'BindStarted' for one in known):
            return BindCancelled
        if any(one.holds is not None for one in known):
            return HandlesContended
        card = known[0].card
        assert card is not None
        if self.free(card) >= len(known):
            return None
        cleaned = [o for o in self.requests.values() if o.holds == card and o.left]
        enough = self.free(card) + len(cleaned) >= len(known)
        return HandlesContended if enough else NoFreeHandle

    def fail(self, bind: Bind) -> None:
        event = self.database.write(binding.fail, bind.job, bind.uuids, 'no', TOLD)
        if event is not None:
            self.database.write(jobs.finish, event)
        for uuid in bind.uuids:
            if uuid in self.requests:
                one = self.requests[uuid]
                one.preparing = False
                self.let_go(one)
                if one.state == 'BindStarted':
                    one.state = 'BindFailed'

    # --- hosts ---

    @precondition(lambda self: self.claimed)
    @rule(number=st.integers(0, 7), well=st.booleans())
    def prepare(self, number: int, well: bool) -> None:
        bind = self.claimed.pop(number % len(self.claimed))
        known = [self.requests[uuid] for uuid in bind.uuids]
        if not well:
            self.fail(bind)
        elif any(one.state != 'BindStarted' for one in known):
            with pytest.raises(BindCancelled):
                self.database.write(binding.succeed, bind.job, bind.uuids, None, TOLD)
            self.fail(bind)
        else:
            event = self.database.write(
                binding.succeed, bind.job, bind.uuids, None, TOLD
            )
            self.database.write(jobs.finish, event)
            for one in known:
                one.state, one.preparing = 'Bound', False

    @rule(well=st.booleans())
    def clean(self, well: bool) -> None:
        for job in self.database.write(jobs.take, OWNER, 1):
            if job.kind != Kind.RELEASE:
                self.database.write(jobs.finish, job)
                continue
            handle = self.database.read(handles.to_clean, job.payload['handle'])
            if handle is None:
                self.database.write(jobs.finish, job)
                continue
            one = self.requests[handle.arq_uuid]
            assert one.state != 'Bound'
            assert not one.preparing
            if not well:
                self.database.write(release.not_cleaned, handle, 'held by a guest')
                self.database.write(jobs.put_off, job, 0, 'held by a guest')
                one.state = 'UnbindFailed' if one.state == 'Unbound' else one.state
                continue
            self.database.write(release.cleaned, job, handle)
            one.holds = None
            if one.state == 'Deleting':
                del self.requests[handle.arq_uuid]
            elif one.state == 'UnbindFailed':
                one.state = 'Unbound'

    # --- always ---

    @invariant()
    def the_database_agrees(self) -> None:
        uuids = list(self.requests)
        expected = [self.requests[uuid].state for uuid in uuids]
        assert states(self.database, uuids) == expected
        holding = sorted(u for u, one in self.requests.items() if one.holds)
        assert owners(self.database) == holding


def _clear(session: Any) -> None:
    for table in (Job, AttachHandle, Arq, Deployable, Device):
        session.execute(delete(table))


def test_no_walk_leads_the_database_astray(database: Database) -> None:
    walk = type('WalkHere', (Walk,), {'database': database})
    # The number of steps, not their time, bounds the test.
    run_state_machine_as_test(
        walk,
        settings=settings(
            max_examples=25,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
