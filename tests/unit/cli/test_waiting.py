# SPDX-License-Identifier: Apache-2.0
"""Tests of waits with a progress bar."""

import argparse
import io
from collections.abc import Iterable, Iterator

import pytest

from cyborg_lite.cli import waiting
from cyborg_lite.cli.waiting import Progress


class Terminal(io.StringIO):
    """Stream that is a terminal."""

    def isatty(self) -> bool:
        return True


def wait(
    states: Iterable[Progress], stream: io.StringIO, timeout: float = 100
) -> list[float]:
    """Wait with a clock that only the pauses advance; return the pauses."""
    pauses: list[float] = []
    iterator: Iterator[Progress] = iter(states)
    waiting.wait_until_finished(
        lambda: next(iterator),
        stream,
        timeout,
        pause=pauses.append,
        clock=lambda: sum(pauses),
    )
    return pauses


STEPS = [
    Progress(0, 'accepted'),
    Progress(25, 'loading'),
    Progress(25, 'loading'),
    Progress(100, 'loaded', is_finished=True),
]


def test_wait_in_file_prints_line_per_change() -> None:
    stream = io.StringIO()
    wait(STEPS, stream)
    assert stream.getvalue() == '  0% accepted\n 25% loading\n100% loaded\n'


def test_wait_on_terminal_draws_bar_in_one_line() -> None:
    stream = Terminal()
    wait(STEPS, stream)
    lines = stream.getvalue().split('\r')
    assert lines[0] == ''
    assert lines[1] == f'[{"." * 30}]   0% accepted'
    # The longer text before is overwritten.
    assert lines[2] == f'[{"#" * 7}{"." * 23}]  25% loading '
    assert lines[3] == f'[{"#" * 30}] 100% loaded\n'.replace('\n', ' \n')


def test_wait_pauses_grow_up_to_limit() -> None:
    pauses = wait([STEPS[0]] * 12 + [STEPS[-1]], io.StringIO())
    assert (pauses[0], pauses[-1]) == (0.2, 2.0)
    assert pauses == sorted(pauses)


@pytest.mark.parametrize('text', ['0', '-1', 'inf', 'nan', 'x'])
def test_timeout_must_be_positive(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser(exit_on_error=False)
    waiting.add_wait_options(parser)
    with pytest.raises((argparse.ArgumentError, SystemExit)):
        parser.parse_args(['--timeout', text])
    assert parser.parse_args(['--wait']).timeout == 600
