# SPDX-License-Identifier: Apache-2.0
"""The model of a bind in doc/source/contributor/bind.pml, in all its executions."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

_MODEL: Final = Path(__file__).parents[2] / 'doc/source/contributor/bind.pml'

pytestmark = pytest.mark.skipif(
    not (shutil.which('spin') and shutil.which('gcc')), reason='spin is not installed'
)


def verify(directory: Path, *options: str) -> str:
    """Return what the verifier of the model prints."""
    for command in (
        ['spin', '-a', *options, str(_MODEL)],
        ['gcc', '-O2', '-DSAFETY', '-DMEMLIM=1000', '-o', 'pan', 'pan.c'],
    ):
        subprocess.run(command, cwd=directory, check=True, capture_output=True)
    return subprocess.run(
        ['./pan', '-m100000', '-E'],
        cwd=directory,
        text=True,
        capture_output=True,
        check=True,
    ).stdout


def test_model_of_bind_has_no_violation(tmp_path: Path) -> None:
    output = verify(tmp_path)
    assert 'errors: 0' in output, output
    assert 'Search not completed' not in output, output


@pytest.mark.parametrize(
    ('protocol', 'violation'),
    [
        ('-DOLD_PREPARE', 'prepared[0]&&prepared[1]'),
        ('-DOLD_CLAIM', 'allocated==2'),
        ('-DOLD_RESTORE', 'again>stored_generation[0]'),
    ],
)
def test_model_of_old_protocol_has_violation(
    protocol: str, violation: str, tmp_path: Path
) -> None:
    output = verify(tmp_path, protocol)
    assert 'assertion violated' in output
    assert violation in output
