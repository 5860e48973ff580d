# SPDX-License-Identifier: Apache-2.0
"""Execution of the simulated cloud, which a seed decides."""

import random
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import create_engine, text

from tests.chaos.history.checker import check
from tests.chaos.history.records import History
from tests.simulation import scheduler
from tests.simulation.clients import Users
from tests.simulation.cloud import Cloud
from tests.simulation.faults import Disturbance, plan_faults
from tests.simulation.invariants import Invariants
from tests.simulation.weaknesses import PLANS, WEAKNESSES

USERS: Final = 4
_DURATION: Final = 100.0  # seconds with faults
_LIMIT: Final = 900.0  # seconds until the cloud must be at rest after the last fault
_RESTORING: Final = 4  # each fourth seed restores a copy of the database
_RESTORED: Final = 300.0  # seconds after that, in which servers must keep their devices
_POLL: Final = 5.0  # seconds
_JOBS: Final = "SELECT kind, state, last_error FROM jobs WHERE kind <> 'audit'"
_PERIODS: Final = 'SELECT arq_uuid FROM usage_periods ORDER BY arq_uuid'
_BINDS: Final = (
    "SELECT arq FROM history_steps WHERE kind = 'arq' AND state = 'Bound' "
    "AND previous = 'BindStarted' ORDER BY arq"
)
_OWNERS: Final = 'SELECT arq_uuid FROM attach_handles WHERE arq_uuid IS NOT NULL'


@dataclass(frozen=True)
class Outcome:
    """Outcome of the execution of a seed."""

    violations: Sequence[str]
    facts: Mapping[str, object]
    trace: Sequence[str]
    """Faults and requests to the API, by time."""
    faults: Sequence[int]
    """Numbers of the faults of the plan."""


@dataclass(frozen=True)
class Variant:
    """Parameters of an execution."""

    seed: int
    weakness: str = ''
    """Weakness that is planted into the service; empty: none."""
    users: int = USERS
    faults: Collection[int] | None = None
    """Numbers of the faults that happen; None: all."""
    is_short: bool = False
    """Stop at the first violation."""


def simulate(variant: Variant, directory: Path) -> Outcome:
    """Run a cloud."""
    seed = variant.seed
    running = scheduler.Scheduler(seed)
    scheduler.use(running)
    random.seed(seed)
    if variant.weakness:
        WEAKNESSES[variant.weakness]()
    cloud = Cloud(directory)
    invariants = Invariants(cloud)
    cloud.start()
    users = Users(cloud)
    users.create_profiles()
    plan = plan_faults(seed, _DURATION, variant.faults, PLANS.get(variant.weakness, ()))
    disturbance = Disturbance(cloud, seed, plan)
    time.sleep(20)
    users.start(variant.users)
    disturbance.start()
    end = running.now + _DURATION
    if seed % _RESTORING == 0:
        # A host that has learned a later mark than the copy has begins the quarantine.
        time.sleep(running.current.random.random() * _DURATION)
        cloud.save_database()
    while running.now < end and not (variant.is_short and invariants.violations):
        time.sleep(_POLL)
    if seed % _RESTORING == 0:
        disturbance.end()
        invariants.restore()
        time.sleep(_RESTORED)
        violations = [*invariants.violations, *users.violations]
    else:
        violations = _end(cloud, users, invariants, disturbance, variant)
    facts = {
        **users.counts,
        **cloud.count_incarnations(),
        'seconds': round(running.now),
        'switches': running.switches,
    }
    trace = sorted([*disturbance.trace, *cloud.requests], key=_read_moment)
    return Outcome(violations, facts, trace, [fault.number for fault in plan])


def _end(
    cloud: Cloud,
    users: Users,
    invariants: Invariants,
    disturbance: Disturbance,
    variant: Variant,
) -> list[str]:
    """Let the users and the faults end, and check the history.

    :returns: the violations
    """
    users.is_over = True
    violations = invariants.violations + users.violations
    if not (variant.is_short and violations):
        disturbance.end()
        remainder = list(_wait_for_rest(cloud, users))
        history = History(
            users.operations,
            *cloud.steps.read(),
            cloud.nova.receipts,
            cloud.host_steps,
            not remainder,
        )
        violations = [*invariants.violations, *users.violations, *remainder]
        violations += map(str, check(history))
    return violations


def _read_moment(line: str) -> float:
    return float(line.partition(' ')[0])


def _wait_for_rest(cloud: Cloud, users: Users) -> Iterator[str]:
    """Yield what is not at rest in time after the last fault."""
    deadline = time.monotonic() + _LIMIT
    while users.running and time.monotonic() < deadline:
        time.sleep(_POLL)
    if any(cards.hanging for cards in cloud.cards.values()):
        users.check_hosts_serve()
    for cards in cloud.cards.values():
        cards.hanging = ''
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
        uses = [connection.scalars(text(query)).all() for query in (_PERIODS, _BINDS)]
        if uses[0] != uses[1]:
            yield f'The ARQs with a use are {uses[0]}, the Bound ones were {uses[1]}.'
    engine.dispose()
    for cards in cloud.cards.values():
        owners.update(cards.prepared.values())
    for arq in sorted(owners):
        yield f'A device of the ARQ {arq} is left.'
