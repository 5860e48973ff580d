# SPDX-License-Identifier: Apache-2.0
"""Runs seeds, each in a process of its own: ``python -m tests.simulation 1-200``.

A seed decides an execution only if the hashes of texts are the same:
``PYTHONHASHSEED=0``.
"""

from tests.simulation import virtual  # isort: skip  # replaces threads and clocks first

import argparse
import json
import logging
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from cyborg_lite import runtime
from tests.servers.databases import create_sqlite_file
from tests.simulation.run import simulate
from tests.simulation.weaknesses import WEAKNESSES

__all__ = ['runtime', 'virtual']

_SHOWN: Final = 5  # violations of a seed
_UUID: Final = re.compile(r'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')

# Any, in this module: the outcome of a seed as JSON.
Outcome = dict[str, Any]


def main() -> int:
    """Run the seeds; return 1 if one of them violates a rule."""
    options = _parse()
    first, _, last = options.seeds.partition('-')
    level = logging.INFO if options.log else logging.CRITICAL
    logging.basicConfig(level=level, stream=sys.stdout)
    for name in options.weakness:
        WEAKNESSES[name]()
    with tempfile.TemporaryDirectory() as directory:
        create_sqlite_file(Path(directory) / 'schema')  # built once for all seeds
    bad = []
    for seed in range(int(first), int(last or first) + 1):
        outcome = run(seed)
        print(f'seed {seed}: {json.dumps(outcome["facts"])}', flush=True)
        for line in outcome['violations'][:_SHOWN]:
            print(f'  {line}')
        if outcome['violations']:
            bad.append(seed)
            if options.shrink:
                print_shortest(seed, outcome)
            if options.weakness:
                break
    print(f'{len(bad)} seeds violate a rule: {bad}')
    return 1 if bad else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('seeds', help='a seed, or a range such as 1-200')
    parser.add_argument('--log', action='store_true', help='print the log of the nodes')
    parser.add_argument(
        '--shrink', action='store_true', help='print the shortest trace of a violation'
    )
    parser.add_argument(
        '--weakness',
        action='append',
        default=[],
        choices=sorted(WEAKNESSES),
        help='plant a weakness into the service, and stop at its first violation',
    )
    return parser.parse_args()


def run(seed: int, chosen: Sequence[int] | None = None) -> Outcome:
    """Run a seed in a child.

    :param chosen: numbers of the faults that happen; None: all
    """
    sys.stdout.flush()
    memory = '/dev/shm' if os.path.isdir('/dev/shm') else None
    with tempfile.TemporaryDirectory(dir=memory) as directory:
        result = Path(directory) / 'outcome.json'
        child = os.fork()
        if not child:
            try:
                outcome = simulate(seed, Path(directory), chosen)
                result.write_text(json.dumps(asdict(outcome)))
            except Exception:  # noqa: BLE001  # `os._exit` prints no traceback
                traceback.print_exc(file=sys.stdout)
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)
        if result.exists():
            return dict(json.loads(result.read_text()))
        line = 'The simulation itself has failed.'
        return {'violations': [line], 'facts': {}, 'trace': [], 'faults': []}


def print_shortest(seed: int, outcome: Outcome) -> None:
    """Leave out faults while the seed still violates the rule; print the trace."""
    rule = _name_rule(outcome['violations'][0])
    is_shorter = True
    while is_shorter:
        is_shorter = False
        for chosen in _leave_out(outcome['faults']):
            shorter = run(seed, chosen)
            if any(_name_rule(line) == rule for line in shorter['violations']):
                outcome, is_shorter = shorter, True
                break
    lines = [line for line in outcome['violations'] if _name_rule(line) == rule]
    subjects = set(_UUID.findall(lines[0]))
    print(f'  The shortest trace of seed {seed}, with faults {outcome["faults"]}:')
    for line in outcome['trace']:
        if ' fault ' in line or subjects & set(_UUID.findall(line)):
            print(f'    {line}')
    print(f'    {lines[0]}')


def _leave_out(faults: Sequence[int]) -> Iterator[Sequence[int]]:
    """Yield the faults without half of them, a quarter, and so on."""
    size = len(faults) // 2
    while size:
        for start in range(0, len(faults), size):
            yield [*faults[:start], *faults[start + size :]]
        size //= 2


def _name_rule(violation: str) -> str:
    """Return a violation without what differs between two executions."""
    return re.sub(r'[0-9].*?(?= |$)', '', _UUID.sub('', violation))[:40]


sys.exit(main())
