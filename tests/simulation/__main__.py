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
import sys
import tempfile
import traceback
from pathlib import Path

from cyborg_lite import runtime
from tests.servers.databases import create_sqlite_file
from tests.simulation.run import simulate

__all__ = ['runtime', 'virtual']


def main() -> int:
    """Run the seeds; return 1 if one of them violates a rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('seeds', help='a seed, or a range such as 1-200')
    parser.add_argument('--log', action='store_true', help='print the log of the nodes')
    parser.add_argument(
        '--leaking-cards', action='store_true', help='released handles stay prepared'
    )
    options = parser.parse_args()
    first, _, last = options.seeds.partition('-')
    level = logging.INFO if options.log else logging.CRITICAL
    logging.basicConfig(level=level, stream=sys.stdout)
    with tempfile.TemporaryDirectory() as directory:
        create_sqlite_file(Path(directory) / 'schema')  # built once for all seeds
    seeds = range(int(first), int(last or first) + 1)
    bad = [seed for seed in seeds if run(seed, leaking=options.leaking_cards)]
    print(f'{len(bad)} seeds violate a rule: {bad}')
    return 1 if bad else 0


def run(seed: int, *, leaking: bool) -> bool:
    """Run a seed in a child; return whether it violates a rule."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] != 0
    code = 2
    memory = '/dev/shm' if os.path.isdir('/dev/shm') else None
    with tempfile.TemporaryDirectory(dir=memory) as directory:
        try:
            violations, facts = simulate(seed, Path(directory), leaking=leaking)
            print(f'seed {seed}: {json.dumps(facts)}')
            for violation in violations:
                print(f'  {violation}')
            code = 1 if violations else 0
        except Exception:  # noqa: BLE001  # `os._exit` prints no traceback
            traceback.print_exc(file=sys.stdout)
    sys.stdout.flush()
    os._exit(code)


sys.exit(main())
