# SPDX-License-Identifier: Apache-2.0
"""Histories of clients and daemons under faults match the model of the API.

CYBORG_LITE_CHAOS_HISTORY_SEED repeats the schedule of a seed.
CYBORG_LITE_CHAOS_HISTORY_MINUTES is the time for new seeds on each database.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.clients import new_seed
from tests.chaos.history.checker import check
from tests.chaos.history.client import Client, Recorder, Slot
from tests.chaos.history.cluster import Cluster
from tests.chaos.history.faults import FaultInjector
from tests.chaos.history.records import History
from tests.chaos.history.schedule import (
    FIXED_SEEDS,
    SLOTS,
    WORKERS,
    Schedule,
    plan,
)
from tests.chaos.history.settlement import Settlement
from tests.chaos.history.workers import Worker

SEED: Final = os.environ.get('CYBORG_LITE_CHAOS_HISTORY_SEED')
MINUTES: Final = float(os.environ.get('CYBORG_LITE_CHAOS_HISTORY_MINUTES', '0'))
REPORTED: Final = 5  # violations that a failure shows


def seeds(database: str) -> Iterator[int]:
    """Yield the seeds of this run."""
    if SEED is not None:
        yield int(SEED)
    elif MINUTES:
        end, first = time.monotonic() + MINUTES * 60, new_seed()
        for number in count(first):
            if time.monotonic() > end:
                return
            yield number
    else:
        yield from FIXED_SEEDS[database]


def test_histories_under_faults_match_model(
    tmp_path: Path,
    broker: str,
    connection: str,
    request: pytest.FixtureRequest,
) -> None:
    with Cluster(tmp_path, broker, connection) as cluster:
        for seed in seeds(request.node.callspec.params['connection']):
            print(f'\nseed {seed}', flush=True)  # also if a daemon does not start again
            schedule, recorder = plan(seed), Recorder()
            perform(cluster, schedule, recorder)
            settlement = Settlement(cluster)
            differences = settlement.wait()
            history = cluster.read_history(recorder.operations)
            history.is_settled = not differences
            report(schedule, history, differences)
            settlement.clear()


def perform(cluster: Cluster, schedule: Schedule, recorder: Recorder) -> None:
    """Perform the operations and the faults of a schedule."""
    # The ARQs of one slot of each pair of workers share their instance.
    pairs = [
        [Slot(count=2 if number == 0 else 1) for number in range(SLOTS)]
        for _ in range(WORKERS // 2)
    ]
    workers = [
        Worker(Client(cluster, recorder), actions, pairs[number // 2])
        for number, actions in enumerate(schedule.workers)
    ]
    cluster.delay_hosts(schedule.delay)
    for worker in workers:
        worker.start()
    try:
        FaultInjector(cluster).run(schedule.faults, schedule.seconds)
    finally:
        for worker in workers:
            worker.stop()
    for worker in workers:
        worker.join()


def report(schedule: Schedule, history: History, differences: Sequence[str]) -> None:
    """Print the counts of a history; fail if it violates the model."""
    answers = Counter(str(operation.status) for operation in history.operations)
    steps = Counter(step.state for step in history.steps)
    summary = (
        f'seed {schedule.seed}: answers {dict(sorted(answers.items()))}, '
        f'steps {dict(sorted(steps.items()))}, events: {len(history.receipts)}'
    )
    print(summary)
    violations = list(check(history))
    if violations or differences:
        parts = [
            f'{summary}; {len(violations)} violations',
            '\n'.join(str(fault) for fault in schedule.faults),
            *differences,
            *(str(violation) for violation in violations[:REPORTED]),
        ]
        pytest.fail('\n\n'.join(parts))
