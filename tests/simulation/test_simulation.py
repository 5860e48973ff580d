# SPDX-License-Identifier: Apache-2.0
"""Seeds of the simulated cloud, each of which is one execution of the real service."""

import subprocess
import sys
from typing import Final

import pytest

from tests.simulation.weaknesses import WEAKNESSES

# The seeds before these find nothing, and only take time.
_FIRST: Final = {'no-leases': 6, 'no-uses': 8, 'no-replay-guard': 10}


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, '-m', 'tests.simulation', *arguments],
        text=True,
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize('seeds', ['1-6', '7-12'])
def test_seeds_violate_no_rule(seeds: str) -> None:
    process = simulate(seeds)
    assert process.returncode == 0, process.stdout + process.stderr


def test_seed_has_one_log() -> None:
    first, second = simulate('28', '--log'), simulate('28', '--log')
    assert 'server built' in first.stdout
    assert first.stdout.splitlines() == second.stdout.splitlines()


@pytest.mark.parametrize('weakness', sorted(WEAKNESSES))
def test_planted_weakness_is_found(weakness: str) -> None:
    process = simulate(f'{_FIRST.get(weakness, 1)}-24', '--weakness', weakness)
    assert process.returncode == 0, process.stdout + process.stderr
    assert 'itself has failed' not in process.stdout
