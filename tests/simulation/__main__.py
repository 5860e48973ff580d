# SPDX-License-Identifier: Apache-2.0
"""Runs seeds, each in a process of its own: ``python -m tests.simulation 1-200``."""

from tests.simulation import virtual  # isort: skip  # replaces threads and clocks first

import argparse
import gc
import json
import logging
import os
import re
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from cyborg_lite import runtime
from tests.servers.databases import create_sqlite_file
from tests.simulation.run import Variant, simulate
from tests.simulation.shrinking import Scenario, shrink
from tests.simulation.weaknesses import WEAKNESSES

__all__ = ['runtime', 'virtual']

_SHOWN: Final = 5  # violations of a seed
_UUID: Final = re.compile(r'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_BROKEN: Final = {
    'violations': ['The simulation itself has failed.'],
    'facts': {},
    'trace': [],
    'faults': [],
}

# Any, in this module: the outcome of a seed as JSON.
Outcome = dict[str, Any]


def main() -> int:
    """Run the seeds.

    :returns: 1 if a seed violates a rule, or if no seed finds a planted weakness
    """
    options = _parse()
    first, _, last = options.seeds.partition('-')
    seeds = range(int(first), int(last or first) + 1)
    level = logging.INFO if options.log else logging.CRITICAL
    logging.basicConfig(
        level=level,
        stream=sys.stdout,
        format='%(created).3f %(levelname)s %(name)s: %(message)s',
    )
    with tempfile.TemporaryDirectory() as directory:
        create_sqlite_file(Path(directory) / 'schema')  # built once for all seeds
    # The order in which objects are freed must not depend on the memory of the parent.
    gc.disable()
    gc.freeze()
    processes = 1 if options.log else options.processes
    bad = {
        weakness: _find_violations(seeds, weakness, processes, options.shrink)
        for weakness in options.weakness or ['']
    }
    if options.weakness:
        return 0 if all(bad.values()) else 1
    print(f'{len(bad[""])} seeds violate a rule: {bad[""]}')
    return 1 if bad[''] else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('seeds', help='a seed, or a range such as 1-200')
    parser.add_argument('--log', action='store_true', help='print the log of the nodes')
    parser.add_argument(
        '--shrink', action='store_true', help='print the shortest trace of a violation'
    )
    parser.add_argument(
        '--processes', type=int, default=os.cpu_count(), help='seeds at the same time'
    )
    parser.add_argument(
        '--weakness',
        action='append',
        default=[],
        choices=sorted(WEAKNESSES),
        help='plant a weakness into the service, and stop at its first violation',
    )
    return parser.parse_args()


def _find_violations(
    seeds: Iterable[int], weakness: str, processes: int, shrinks: bool
) -> Sequence[int]:
    """Return the seeds that violate a rule; of a weakness only the first one."""
    bad = []
    variants = (Variant(seed, weakness) for seed in seeds)
    for variant, outcome in run_each(variants, processes):
        name = f'{weakness} seed {variant.seed}'.strip()
        print(f'{name}: {json.dumps(outcome["facts"])}', flush=True)
        for line in outcome['violations'][:_SHOWN]:
            print(f'  {line}', flush=True)
        if outcome['violations']:
            bad.append(variant.seed)
            if shrinks:
                print_shortest(variant, outcome)
            if weakness:
                break
    return bad


def run_each(
    variants: Iterable[Variant], processes: int
) -> Iterator[tuple[Variant, Outcome]]:
    """Run variants in children, several at once; yield the outcomes in order."""
    running: list[tuple[Variant, int, tempfile.TemporaryDirectory[str]]] = []
    try:
        for variant in variants:
            if len(running) >= processes:
                yield _collect(*running.pop(0))
            running.append((variant, *_start(variant)))
        while running:
            yield _collect(*running.pop(0))
    finally:  # of a caller that needs no more
        for remaining in running:
            os.kill(remaining[1], signal.SIGKILL)
            _collect(*remaining)


def _start(variant: Variant) -> tuple[int, tempfile.TemporaryDirectory[str]]:
    sys.stdout.flush()
    memory = '/dev/shm' if os.path.isdir('/dev/shm') else None
    directory = tempfile.TemporaryDirectory(dir=memory)
    child = os.fork()
    if not child:
        try:
            # The names of files must be the same in each execution.
            os.chdir(directory.name)
            outcome = simulate(variant, Path())
            Path('outcome.json').write_text(json.dumps(asdict(outcome)))
        except Exception:  # noqa: BLE001  # `os._exit` prints no traceback
            traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
        os._exit(0)
    return child, directory


def _collect(
    variant: Variant, child: int, directory: tempfile.TemporaryDirectory[str]
) -> tuple[Variant, Outcome]:
    os.waitpid(child, 0)
    result = Path(directory.name, 'outcome.json')
    outcome = json.loads(result.read_text()) if result.exists() else _BROKEN
    directory.cleanup()
    return variant, outcome


def print_shortest(variant: Variant, outcome: Outcome) -> None:
    """Leave out users and faults while the rule is violated; print the trace."""
    rule = _name_rule(outcome['violations'][0])
    shortest = outcome
    runs = 0

    def violates(scenario: Scenario) -> bool:
        nonlocal runs, shortest
        runs += 1
        shorter = replace(
            variant, is_short=True, users=scenario.users, faults=scenario.faults
        )
        ((_, tried),) = run_each([shorter], 1)
        if any(_name_rule(line) == rule for line in tried['violations']):
            shortest = tried
            return True
        return False

    users = shrink(Scenario(variant.users, outcome['faults']), violates).users
    _print_trace(rule, shortest, f'{users} users after {runs} runs')


def _print_trace(rule: str, outcome: Outcome, title: str) -> None:
    lines = [line for line in outcome['violations'] if _name_rule(line) == rule]
    subjects = set(_UUID.findall(lines[0]))
    # The requests about an ARQ name its instance and its other ARQs.
    for line in outcome['trace']:
        uuids = set(_UUID.findall(line))
        subjects |= uuids if uuids & subjects else set()
    print(f'  The shortest trace, with the faults {outcome["faults"]} and {title}:')
    for line in outcome['trace']:
        if ' fault ' in line or subjects & set(_UUID.findall(line)):
            print(f'    {line}')
    print(f'    {lines[0]}', flush=True)


def _name_rule(violation: str) -> str:
    """Return a violation without what differs between two executions."""
    return re.sub(r'[0-9].*?(?= |$)', '', _UUID.sub('', violation))[:40]


if os.environ.get('PYTHONHASHSEED') != '0':
    # The order of texts in a set depends on their hashes.
    command = [sys.executable, '-m', 'tests.simulation', *sys.argv[1:]]
    os.execve(sys.executable, command, {**os.environ, 'PYTHONHASHSEED': '0'})
sys.exit(main())
