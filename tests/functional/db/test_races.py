# SPDX-License-Identifier: Apache-2.0
"""Many at once, on each database: exactly one wins, and nothing is given twice."""

import os
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from uuid import uuid4

from cyborg_lite.conductor.binding import BindHandler, bind_job
from cyborg_lite.db import binding, jobs, release
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import (
    ArqStateConflict,
    CyborgError,
    HandlesContended,
    InstanceHasArqs,
)
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.jobs import Job, Kind, NewJob, Owner
from tests.fakes.agents import FakeAgents
from tests.fakes.consumers import FakeConsumers
from tests.fakes.rows import (
    OWNER,
    PROJECT,
    add_arqs,
    add_card,
    bindings,
    owners,
    states,
)
from tests.fakes.statements import statements
from tests.unit.conductor.test_binding import RULES

T = TypeVar('T')

EVERYBODY = Scope(project_id=None)
BIND = NewJob(Kind.BIND)
TOLD = NewJob(Kind.NOVA_EVENT)

# A minute and more on each database.
ROUNDS = int(os.environ.get('CYBORG_LITE_TEST_RACE_ROUNDS', '200'))
_MOST_ATTEMPTS = 10


def at_once(acts: Sequence[Callable[[], T]]) -> list[T | type[CyborgError]]:
    """What each act returned, or the class of what it raised."""
    barrier = threading.Barrier(len(acts))

    def outcome(act: Callable[[], T]) -> T | type[CyborgError]:
        barrier.wait()
        try:
            return act()
        except CyborgError as error:
            return type(error)

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(outcome, acts))


@dataclass
class Binder:
    """A conductor that binds one request for each of many servers."""

    database: Database
    card: str

    def __post_init__(self) -> None:
        self._consumers = FakeConsumers()
        self._handler = BindHandler(self.database, FakeAgents(), self._consumers, RULES)

    def bind(self, uuid: str) -> str:
        instance = str(uuid4())
        self._consumers.allocate(instance, [self.card], PROJECT)
        wanted = bindings([uuid], self.card, instance)
        new = bind_job(wanted, RULES, None)
        write = self.database.write
        job = write(binding.accept, wanted, EVERYBODY, new, OWNER)
        for _ in range(_MOST_ATTEMPTS):
            with suppress(HandlesContended):  # the job would be put off
                told = self._handler.run(job)
                assert told is not None
                return 'Bound' if told.payload['succeeded'] else 'BindFailed'
        return 'never'


def accept(database: Database, uuids: list[str], card: str, instance: str) -> str:
    wanted = bindings(uuids, card, instance)
    return database.write(binding.accept, wanted, EVERYBODY, BIND, OWNER).kind


def claim(database: Database, job: Job, uuids: list[str]) -> int:
    database.write(binding.claim, job, uuids, None, TOLD)
    return len(uuids)


def call_for(database: Database, job: NewJob) -> None:
    database.write(jobs.add, job)


def delete(database: Database, uuids: list[str]) -> int:
    """How many of them were not there any more."""
    return len(database.write(release.delete_listed, uuids, EVERYBODY, True, None))


def names(ended: Sequence[object]) -> list[str]:
    return sorted(map(str, ended))


def test_sixteen_handles_serve_sixteen_of_thirty_two_clients(
    database: Database,
) -> None:
    card = add_card(database, 16)
    binder = Binder(database, card)
    for _ in range(ROUNDS):
        uuids = add_arqs(database, 32)
        with statements(database) as sent:
            ended = at_once([partial(binder.bind, uuid) for uuid in uuids])
        assert Counter(ended) == {'Bound': 16, 'BindFailed': 16}
        # Alone each bind takes twelve.
        assert len(sent) <= 32 * 24, 'a storm of retries'
        bound = [u for u, state in zip(uuids, ended, strict=True) if state == 'Bound']
        assert owners(database) == sorted(bound)
        assert delete(database, uuids) == 0
        assert owners(database) == []


def test_one_of_two_sets_wins_an_instance(database: Database) -> None:
    card = add_card(database, 1)
    for _ in range(10):
        instance = str(uuid4())
        sets = [add_arqs(database, 2), add_arqs(database, 2)]
        ended = at_once([partial(accept, database, u, card, instance) for u in sets])
        assert names(ended) == names([Kind.BIND, InstanceHasArqs])
        loser = sets[ended.index(InstanceHasArqs)]
        assert states(database, loser) == ['Initial', 'Initial']


def test_one_of_two_instances_wins_a_request(database: Database) -> None:
    card = add_card(database, 1)
    for _ in range(10):
        uuids = add_arqs(database, 1)
        instances = str(uuid4()), str(uuid4())
        ended = at_once([partial(accept, database, uuids, card, i) for i in instances])
        assert names(ended) == names([Kind.BIND, ArqStateConflict])


def test_a_delete_that_races_a_claim_leaves_no_handle_behind(
    database: Database,
) -> None:
    card = add_card(database, 2)
    for _ in range(10):
        uuids = add_arqs(database, 2)
        wanted = bindings(uuids, card)
        job = database.write(binding.accept, wanted, EVERYBODY, BIND, OWNER)
        at_once(
            [partial(claim, database, job, uuids), partial(delete, database, uuids)]
        )
        assert states(database, uuids) == []
        assert owners(database) == []


def test_the_same_delete_twice_at_once_is_done_once(database: Database) -> None:
    for _ in range(10):
        uuids = add_arqs(database, 2)
        ended = at_once([partial(delete, database, uuids)] * 2)
        assert names(ended) == ['0', '2']
        assert states(database, uuids) == []


def test_each_job_is_taken_by_one_of_many_runners(database: Database) -> None:
    for _ in range(40):
        database.write(jobs.add, NewJob(Kind.RELEASE))
    runners = [Owner(f'conductor:{number}', 30_000) for number in range(8)]

    def take_all(owner: Owner) -> list[str]:
        taken: list[str] = []
        while found := database.write(jobs.take, owner, 3):
            taken += [job.uuid for job in found]
        return taken

    ended = at_once([partial(take_all, owner) for owner in runners])
    uuids = [uuid for taken in ended for uuid in taken]  # type: ignore[union-attr]  # none raised
    assert len(uuids) == len(set(uuids)) == 40


def test_one_row_for_one_key_whoever_calls_for_it(database: Database) -> None:
    sync = NewJob(Kind.PLACEMENT_SYNC, key='compute-1')
    at_once([partial(call_for, database, sync)] * 8)
    assert len(database.write(jobs.take, OWNER, 10)) == 1
