# SPDX-License-Identifier: Apache-2.0
"""Seeds of the simulated cloud, each of which is one execution of the real service."""

import os
import subprocess
import sys

import pytest


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, '-m', 'tests.simulation', *arguments],
        env={**os.environ, 'PYTHONHASHSEED': '0'},
        text=True,
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize('seeds', ['1-8', '9-16', '17-24'])
def test_seeds_violate_no_rule(seeds: str) -> None:
    process = simulate(seeds)
    assert process.returncode == 0, process.stdout + process.stderr


def test_seed_is_one_execution() -> None:
    first, second = simulate('3'), simulate('3')
    assert 'server built' in first.stdout
    assert first.stdout == second.stdout


@pytest.mark.parametrize(
    'weakness',
    ['leaking-cards', 'no-leases', 'no-comparison', 'no-replay-guard', 'hung-device'],
)
def test_planted_weakness_is_found(weakness: str) -> None:
    process = simulate('1-12', '--weakness', weakness)
    assert process.returncode == 1, process.stdout + process.stderr
    assert 'itself has failed' not in process.stdout
