# SPDX-License-Identifier: Apache-2.0
"""Seeds of the simulated cloud, each of which is one execution of the real service."""

import subprocess
import sys
from typing import Final

import pytest

from tests.simulation.weaknesses import WEAKNESSES

# The seeds before these find nothing, and only take time. Each process needs as long to
# start as two seeds.
_SEEDS: Final = {
    '1-24': WEAKNESSES.keys() - {'no-leases', 'no-uses', 'no-replay-guard'},
    '6-24': {'no-leases', 'no-uses', 'no-replay-guard'},
}


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, '-m', 'tests.simulation', *arguments],
        text=True,
        capture_output=True,
        check=False,
    )


def test_seeds_violate_no_rule() -> None:
    process = simulate('1-12')
    assert process.returncode == 0, process.stdout + process.stderr


def test_seed_has_one_log() -> None:
    first, second = simulate('28', '--log'), simulate('28', '--log')
    assert 'server built' in first.stdout
    assert first.stdout.splitlines() == second.stdout.splitlines()


@pytest.mark.parametrize('seeds', _SEEDS)
def test_planted_weaknesses_are_found(seeds: str) -> None:
    names = [f'--weakness={weakness}' for weakness in sorted(_SEEDS[seeds])]
    process = simulate(seeds, *names)
    assert process.returncode == 0, process.stdout + process.stderr
    assert 'itself has failed' not in process.stdout
