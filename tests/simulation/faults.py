# SPDX-License-Identifier: Apache-2.0
"""Plan of the faults of a seed. Each runs in a thread of its own, several at once."""

import random
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tests.simulation import scheduler
from tests.simulation.cloud import CONDUCTORS, HOSTS, Cloud

_NODES: Final = (*CONDUCTORS, *HOSTS)
_MAX_FAULTS: Final = 40


@dataclass(frozen=True)
class Fault:
    """A fault, whose parameters its number and the seed decide."""

    number: int
    at: float  # seconds after the start of the plan
    kind: str


def plan_faults(
    seed: int, duration: float, chosen: Collection[int] | None, kinds: Sequence[str]
) -> Sequence[Fault]:
    """Return the faults of a seed.

    :param chosen: numbers of the faults that happen; None: all
    :param kinds: one of each; empty: faults of a random subset of all kinds
    """
    chance = random.Random(f'plan {seed}')
    names = [name for name in vars(FaultMaker) if not name.startswith('_')]
    if not kinds:
        some = chance.sample(names, chance.randint(1, len(names)))
        kinds = chance.choices(some, k=chance.randint(5, _MAX_FAULTS))
    faults = [
        Fault(number, chance.random() * duration, kind)
        for number, kind in enumerate(kinds)
    ]
    return [fault for fault in faults if chosen is None or fault.number in chosen]


class Disturbance:
    """Makes the faults of a plan."""

    def __init__(self, cloud: Cloud, seed: int, plan: Sequence[Fault]) -> None:
        self._cloud = cloud
        self._seed = seed
        self._plan = plan
        self._is_over = False
        self.running = 0
        self.trace: list[str] = []

    def start(self) -> None:
        """Start a thread for each fault."""
        for fault in self._plan:
            self.running += 1
            scheduler.find_scheduler().start(
                f'fault{fault.number}', partial(self._make, fault)
            )

    def _make(self, fault: Fault) -> None:
        time.sleep(fault.at)
        self.trace.append(f'{time.monotonic():.3f} fault {fault.number} {fault.kind}')
        chance = random.Random(f'{self._seed} {fault.number}')
        getattr(FaultMaker(self._cloud, chance), fault.kind)()
        self.running -= 1

    def end(self) -> None:
        """Wait for the end of the faults, and repair all but hanging cards."""
        while self.running:
            time.sleep(1)
        self._cloud.faults.clear()
        for cards in self._cloud.cards.values():
            cards.slow = cards.failing = cards.least = 0.0
        self.trace.append(f'{time.monotonic():.3f} end of faults')


@dataclass
class FaultMaker:
    """The kinds of faults: each public method is one."""

    _cloud: Cloud
    _random: random.Random

    def kill_conductor(self) -> None:
        """Kill a conductor, and start it later."""
        self._kill(self._random.choice(CONDUCTORS))

    def kill_agent(self) -> None:
        """Kill an agent, and start it later."""
        self._kill(self._random.choice(HOSTS))

    def boot_host(self) -> None:
        """Boot a host."""
        self._boot(self._random.choice(HOSTS))

    def freeze_node(self) -> None:
        """Let a node stand still, for longer than the lease of a job or not."""
        name = self._random.choice(_NODES)
        if self._cloud.is_running(name):
            self._cloud.freeze_node(name, self._random.random() * 40)

    def step_clock(self) -> None:
        """Step the clock of a node by up to an hour."""
        offset = self._random.uniform(-3600, 3600)
        scheduler.find_scheduler().offsets[self._random.choice(_NODES)] = offset

    def step_database_clock(self) -> None:
        """Step the clock of the database by up to an hour; a conductor dies with it."""
        farthest = self._random.choice((300, 3600))
        self._cloud.step_database_clock(self._random.uniform(-farthest, farthest))
        if self._random.random() < 0.5:
            self._kill(self._random.choice(CONDUCTORS))

    def break_cards(self) -> None:
        """Let the cards of a host be slow, fail, or both for a time."""
        cards = self._cloud.cards[self._random.choice(HOSTS)]
        cards.slow = self._random.choice((0.0, 5.0, 15.0, 30.0, 60.0))
        cards.failing = self._random.choice((0.0, 0.3, 0.6))
        time.sleep(self._random.random() * 60)
        cards.slow = cards.failing = 0.0

    def interrupt_binds(self) -> None:
        """Kill the conductors while cards are slow, so that others repeat the binds."""
        cards = self._cloud.cards[self._random.choice(HOSTS)]
        cards.slow, cards.failing = 60.0, self._random.choice((0.3, 0.6))
        for name in CONDUCTORS * 2:
            time.sleep(self._random.random() * 10)
            self._kill(name)
        cards.slow = cards.failing = 0.0

    def outlast_calls(self) -> None:
        """Let two preparations take longer than the call of a conductor."""
        for cards in self._cloud.cards.values():
            cards.least, cards.failing = self._random.uniform(10, 13), 0.3
        time.sleep(60)
        for cards in self._cloud.cards.values():
            cards.least = cards.failing = 0.0

    def hang_card(self) -> None:
        """Boot a host one of whose cards hangs from then on."""
        host = self._random.choice(HOSTS)
        self._cloud.cards[host].hanging = self._cloud.cards[host].addresses[0]
        self._boot(host)

    def replay_messages(self) -> None:
        """Send recorded messages again."""
        for _ in range(self._random.randint(1, 30)):
            self._cloud.replay(self._random)
            time.sleep(self._random.random())

    def lose_commits(self) -> None:
        """Lose commits, and results of commits."""
        self._set('commit_lost', 0.1)
        self._set('commit_unknown', 0.1)

    def lose_messages(self) -> None:
        """Lose requests and answers."""
        self._set('request_lost', 0.2)
        self._set('answer_lost', 0.3)

    def stop_placement(self) -> None:
        """Let Placement fail."""
        self._set('placement', 0.5)

    def stop_nova(self) -> None:
        """Let Nova fail."""
        self._set('nova', 0.5)

    def _boot(self, host: str) -> None:
        if not self._cloud.is_running(host):
            return
        self._cloud.kill_node(host)
        time.sleep(self._random.random() * 20)
        self._cloud.boot_host(host)
        self._cloud.start_node(host)

    def _kill(self, name: str) -> None:
        if not self._cloud.is_running(name):
            return
        self._cloud.kill_node(name)
        time.sleep(self._random.random() * 20)
        self._cloud.start_node(name)

    def _set(self, fault: str, maximum: float) -> None:
        """Set a probability for some seconds."""
        setattr(self._cloud.faults, fault, self._random.random() * maximum)
        time.sleep(self._random.random() * 10)
        setattr(self._cloud.faults, fault, 0.0)
