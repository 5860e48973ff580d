# SPDX-License-Identifier: Apache-2.0
"""Conformance checks of recovery: a crash at every step of a bind and of a release.

The tests of a driver call each of ``CRASH_CHECKS`` with a ``Scenario`` and an empty
directory. The first run of a check records all steps. In each further run a process
crashes before or after one of the steps, and its successor must complete the work. A
failed check raises ``ConformanceError`` with the step and the fault. No server, message
bus or test runner is needed.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Final, TypeVar

from cyborg_lite.db.jobs import queue
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.devices.cleaning import CleaningState
from cyborg_lite.model.inventory.host_report import DiscoveryResult
from cyborg_lite.testing.cloud import Cloud, CrashDatabases, Scenario
from cyborg_lite.testing.crash_points import CrashPoint
from cyborg_lite.testing.driver_checks import ConformanceError, expect

__all__ = ['CRASH_CHECKS', 'Scenario']

T = TypeVar('T')

Action = Callable[[Cloud], None]
HostStates = Sequence[str]  # results after the bind, results after the release

_UUID: Final = re.compile('[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')

# After a crash at these points the successor cannot know that Nova has the event. It
# sends the event again, which is harmless.
_EVENT_SENT: Final = (
    'after the POST to Nova',
    f'before the transaction {queue.finish_job.__name__}',
)


def check_bind_survives_crashes(scenario: Scenario, root: Path) -> None:
    """Check that all ARQs get Bound, the host is prepared and Nova has the events."""
    _check_all_points(scenario, root, Cloud.bind)


def check_release_survives_crashes(scenario: Scenario, root: Path) -> None:
    """Check that no ARQ, claim or prepared handle is left, and all units are clean."""
    _check_all_points(scenario, root, Cloud.delete)


CRASH_CHECKS: Final[Sequence[Callable[[Scenario, Path], None]]] = (
    check_bind_survives_crashes,
    check_release_survives_crashes,
)


def check_all_points(
    scenario: Scenario,
    root: Path,
    run: Callable[[Cloud], T],
    compare: Callable[[T, T], None],
) -> None:
    """Repeat a run with a crash at each of its points.

    :param compare: checks the result of a run against that without a crash
    :raises ConformanceError: a result or a step differs
    """
    root.mkdir(parents=True, exist_ok=True)
    with closing(CrashDatabases(root)) as databases:
        no_crash = CrashPoint()
        expected = run(Cloud(scenario, databases, root / 'unharmed', no_crash))
        for number, point in enumerate(no_crash.points):
            directory = root / f'point-{number}'
            cloud = Cloud(scenario, databases, directory, CrashPoint(number))
            try:
                compare(run(cloud), expected)
                reached = cloud.crash_point.reached
                expect(reached == point, 'the steps differ from those of the first run')
            except ConformanceError as error:
                raise ConformanceError(f'after a crash {point}: {error}') from error


def _check_all_points(scenario: Scenario, root: Path, action: Action) -> None:
    def run(cloud: Cloud) -> HostStates:
        return _bind_and_delete(cloud, action)

    check_all_points(scenario, root, run, _compare_states)


def _bind_and_delete(cloud: Cloud, crashing: Action) -> HostStates:
    """Bind and delete the ARQs; processes crash in one of the two actions only."""
    states = []
    for action, check in ((Cloud.bind, _check_bound), (Cloud.delete, _check_free)):
        with cloud.crash_point.activate() if action is crashing else nullcontext():
            action(cloud)
        check(cloud)
        states.append(_format_results(cloud.discover()))
    return states


def _format_results(results: Sequence[DiscoveryResult]) -> str:
    """Return the results as text, without the uuids, which differ in each run."""
    return _UUID.sub('#', repr(results))


def _compare_states(states: HostStates, expected: HostStates) -> None:
    expect(states[0] == expected[0], 'the host is not prepared as without a crash')
    expect(states[1] == expected[1], 'the host is not released as without a crash')


def _check_bound(cloud: Cloud) -> None:
    arqs = cloud.list_arqs()
    states = {f'{arq.state} ({arq.status_reason})' for arq in arqs}
    uuids = sorted(arq.uuid for arq in cloud.arqs)
    bound = {arq.uuid for arq in arqs if arq.state is State.BOUND}
    expect(sorted(bound) == uuids, f'ARQs are {", ".join(states)}')
    expect(cloud.list_claims() == uuids, 'an ARQ has no attach handle')
    on_host = sorted(arq.uuid for arq in arqs if arq.needs_host)
    expect(cloud.list_prepared() == on_host, 'the agent has other prepared handles')
    attempts = 2 if cloud.crash_point.reached in _EVENT_SENT else 1
    events = cloud.nova.events
    expect(all(event.succeeded for event in events), 'Nova has an event of a failure')
    received = sorted(event.arq_uuid for event in events)
    expect(set(received) == set(uuids), 'Nova has no event of an ARQ')
    expect(len(received) <= attempts * len(uuids), 'Nova has an event too many times')


def _check_free(cloud: Cloud) -> None:
    expect(not cloud.list_arqs(), 'an ARQ is never deleted')
    expect(not cloud.list_claims(), 'a handle is never released')
    expect(not cloud.list_prepared(), 'the agent has a prepared handle left')
    unclean = [f'{unit.unit} ({unit.reason})' for unit in cloud.list_unclean()]
    expect(not unclean, f'units are not clean: {", ".join(unclean)}')
    cleans = cloud.list_cleanings()
    is_complete = all(step.finished_at for clean in cleans for step in clean.steps)
    expect(is_complete, 'the record of a cleaning run has a step without an end')
    states = {clean.state for clean in cleans}
    is_recorded = states <= {CleaningState.SUCCEEDED} and len(cleans) >= (
        cloud.expected_cleans
    )
    expect(is_recorded, 'a cleaning run is not recorded')
