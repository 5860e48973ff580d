# SPDX-License-Identifier: Apache-2.0
"""Seeds of the simulated cloud, each of which is one execution of the real service."""

import subprocess
import sys

from tests.simulation.weaknesses import WEAKNESSES


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, '-m', 'tests.simulation', *arguments],
        text=True,
        capture_output=True,
        check=False,
    )


def test_seeds_violate_no_rule() -> None:
    process = simulate('1-40')
    assert process.returncode == 0, process.stdout + process.stderr


def test_seed_has_one_log() -> None:
    first, second = simulate('28', '--log'), simulate('28', '--log')
    assert 'server built' in first.stdout
    assert first.stdout.splitlines() == second.stdout.splitlines()


def test_planted_weaknesses_are_found() -> None:
    options = [
        f'--weakness={name}'
        for name in WEAKNESSES
        if name != 'shared-preparation'  # the model finds it
    ]
    process = simulate('1-12', *options)
    assert process.returncode == 0, process.stdout + process.stderr
    assert 'itself has failed' not in process.stdout


def test_shortest_trace_names_violation_and_requests() -> None:
    process = simulate('1', '--weakness=no-comparison', '--shrink')
    _, _, trace = process.stdout.partition('The shortest trace')
    assert 'PATCH /v2/accelerator_requests' in trace, process.stdout
    assert 'allocated' in trace.splitlines()[-1]
