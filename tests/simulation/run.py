# SPDX-License-Identifier: Apache-2.0
"""Execution of the simulated cloud, which a seed decides."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import create_engine, text

from tests.chaos.history.checker import check
from tests.chaos.history.records import History
from tests.simulation import scheduler
from tests.simulation.clients import Users
from tests.simulation.cloud import CONDUCTORS, HOSTS, Cloud

_USERS: Final = 4
_DURATION: Final = 180.0  # seconds with faults
_LIMIT: Final = 900.0  # seconds until the cloud must be at rest after the last fault
_POLL: Final = 5.0  # seconds
_JOBS: Final = "SELECT kind, state, last_error FROM jobs WHERE kind <> 'audit'"
_OWNERS: Final = 'SELECT arq_uuid FROM attach_handles WHERE arq_uuid IS NOT NULL'


@dataclass
class Disturbance:
    """Makes faults of the kinds that the seed selects."""

    cloud: Cloud
    random: random.Random
    is_over: bool = False
    trace: tuple[str, ...] = ()

    def run(self) -> None:
        """Make one fault after the other."""
        kinds: list[Callable[[], None]] = [
            self._kill_conductor,
            self._kill_agent,
            self._freeze_node,
            self._boot_host,
            self._slow_cards,
            self._fail_card,
            self._lose_commits,
            self._lose_messages,
            self._stop_placement,
            self._stop_nova,
        ]
        chosen = self.random.sample(kinds, self.random.randint(1, len(kinds)))
        while not self.is_over:
            time.sleep(self.random.random() * 8)
            kind = self.random.choice(chosen)
            self._note(kind.__name__.strip('_'))
            kind()
        self.cloud.faults.clear()
        for cards in self.cloud.cards.values():
            cards.slow = cards.failing = 0.0
        for name in (*CONDUCTORS, *HOSTS):
            if not self.cloud.is_running(name):
                self.cloud.start_node(name)
        self._note('end of faults')

    def _note(self, line: str) -> None:
        self.trace += (f'{time.monotonic():.3f} {line}',)

    def _kill_conductor(self) -> None:
        self._kill(self.random.choice(CONDUCTORS))

    def _kill_agent(self) -> None:
        self._kill(self.random.choice(HOSTS))

    def _kill(self, name: str) -> None:
        self._note(f'kill {name}')
        self.cloud.kill_node(name)
        time.sleep(self.random.random() * 20)
        self.cloud.start_node(name)
        self._note(f'start {name}')

    def _freeze_node(self) -> None:
        name = self.random.choice((*CONDUCTORS, *HOSTS))
        self.cloud.freeze_node(name, self.random.random() * 30)

    def _boot_host(self) -> None:
        host = self.random.choice(HOSTS)
        self.cloud.kill_node(host)
        time.sleep(self.random.random() * 20)
        self.cloud.boot_host(host)
        self.cloud.start_node(host)

    def _slow_cards(self) -> None:
        self.cloud.cards[self.random.choice(HOSTS)].slow = self.random.choice(
            (0.0, 5.0, 30.0, 60.0)
        )

    def _fail_card(self) -> None:
        cards = self.cloud.cards[self.random.choice(HOSTS)]
        cards.failing = self.random.choice((0.0, 0.3, 0.6))

    def _lose_commits(self) -> None:
        self._set('commit_lost', 0.1)
        self._set('commit_unknown', 0.1)

    def _lose_messages(self) -> None:
        self._set('request_lost', 0.2)
        self._set('answer_lost', 0.3)

    def _stop_placement(self) -> None:
        self._set('placement', 0.5)

    def _stop_nova(self) -> None:
        self._set('nova', 0.5)

    def _set(self, fault: str, maximum: float) -> None:
        """Set a probability for some seconds."""
        setattr(self.cloud.faults, fault, self.random.random() * maximum)
        time.sleep(self.random.random() * 10)
        setattr(self.cloud.faults, fault, 0.0)


def simulate(
    seed: int, directory: Path, *, leaking: bool = False
) -> tuple[list[str], dict[str, object]]:
    """Run a cloud; return the violations and some facts.

    :param leaking: released handles stay prepared, which is a violation
    """
    running = scheduler.Scheduler(seed)
    scheduler.use(running)
    random.seed(seed)
    cloud = Cloud(directory)
    for cards in cloud.cards.values():
        cards.is_leaking = leaking
    cloud.start()
    users = Users(cloud)
    users.create_profiles()
    disturbance = Disturbance(cloud, running.random)
    time.sleep(20)
    users.start(_USERS)
    running.start('disturbance', disturbance.run)
    time.sleep(_DURATION)
    users.is_over = disturbance.is_over = True
    remainder = list(_wait_for_rest(cloud, users))
    steps, claims = cloud.steps.read()
    history = History(
        users.operations,
        steps,
        claims,
        cloud.nova.receipts,
        cloud.host_steps,
        not remainder,
    )
    violations = [*users.violations, *remainder, *map(str, check(history))]
    facts: dict[str, object] = dict(users.counts)
    facts.update(
        seconds=round(running.now),
        switches=running.switches,
        steps=len(steps),
        trace=disturbance.trace,
    )
    return violations, facts


def _wait_for_rest(cloud: Cloud, users: Users) -> Iterator[str]:
    """Yield what is not at rest in time after the last fault."""
    deadline = time.monotonic() + _LIMIT
    while remainder := [*_list_rest(cloud), *users.list_waiting()]:
        if time.monotonic() > deadline:
            yield from remainder
            return
        time.sleep(_POLL)


def _list_rest(cloud: Cloud) -> Iterator[str]:
    """Yield the jobs and the devices in use; at rest there are none."""
    engine = create_engine(cloud.connection)
    with engine.connect() as connection:
        for job in connection.execute(text(_JOBS)):
            yield f'The job {job} is left.'
        owners = set(connection.scalars(text(_OWNERS)))
    engine.dispose()
    for cards in cloud.cards.values():
        owners.update(cards.prepared.values())
    for arq in sorted(owners):
        yield f'A device of the ARQ {arq} is left.'
