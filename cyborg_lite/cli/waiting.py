# SPDX-License-Identifier: Apache-2.0
"""Waits for the end of work that the service continues after its response."""

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TextIO

from osc_lib import exceptions

_BAR_WIDTH: Final = 30  # characters
_FIRST_PAUSE: Final = 0.2  # seconds
_LONGEST_PAUSE: Final = 2.0  # seconds
_DEFAULT_TIMEOUT: Final = 600  # seconds; the service ends a programming job after it


@dataclass(frozen=True, slots=True)
class Progress:
    """State of the work at one moment."""

    percent: int
    text: str
    is_finished: bool = False
    failure: str = ''  # why the work has failed; empty: it has not


class ProgressBar:
    """A bar on a terminal, or one line per change in a file or pipe."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._last_line = ''

    def draw(self, progress: Progress) -> None:
        """Show the progress if it has changed."""
        filled = _BAR_WIDTH * progress.percent // 100
        bar = f'[{"#" * filled}{"." * (_BAR_WIDTH - filled)}]'
        line = f'{bar} {progress.percent:3d}% {progress.text}'
        if line == self._last_line:
            return
        if self._is_terminal:
            self._stream.write(f'\r{line:<{len(self._last_line)}}')
        else:
            self._stream.write(f'{progress.percent:3d}% {progress.text}\n')
        self._stream.flush()
        self._last_line = line

    def end(self) -> None:
        """End the line of the bar."""
        if self._is_terminal and self._last_line:
            self._stream.write('\n')
            self._stream.flush()


def measure_operation(operation: Mapping[str, Any]) -> Progress:
    """Return the progress of an operation.

    :param operation: JSON of the operation
    """
    state, reason = operation['state'], operation['reason']
    failure = ''
    if state in ('failed', 'cancelled'):
        text = reason or 'no reason recorded'
        failure = f'Operation {operation["uuid"]} {state}: {text}'
    last_steps = () if state == 'succeeded' else operation['steps'][-1:]
    steps = [step['name'] for step in last_steps]
    text = f'{" ".join([state, *steps])}{f" ({reason})" if reason else ""}'
    return Progress(operation['progress'], text, state == 'succeeded', failure)


def add_wait_options(parser: argparse.ArgumentParser) -> None:
    """Add the options ``--wait`` and ``--timeout``."""
    parser.add_argument(
        '--wait', action='store_true', help='Wait for the end and show the progress'
    )
    add_timeout(parser)


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--timeout``."""
    parser.add_argument(
        '--timeout',
        metavar='<seconds>',
        type=_parse_seconds,
        default=_DEFAULT_TIMEOUT,
        help='Longest wait; the work continues after it (default: %(default)s)',
    )


def wait_until_finished(
    read: Callable[[], Progress],
    stream: TextIO,
    timeout: float,
    pause: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Read the progress again and again until the work has ended.

    :param read: returns the progress
    :param stream: shows the progress
    :param timeout: in seconds
    :raises CommandError: the work has failed, or has not ended in time
    """
    bar = ProgressBar(stream)
    end, seconds = clock() + timeout, _FIRST_PAUSE
    try:
        while True:
            progress = read()
            bar.draw(progress)
            if progress.failure:
                raise exceptions.CommandError(progress.failure)
            if progress.is_finished:
                return
            if clock() >= end:
                raise exceptions.CommandError(
                    f'Not finished after {timeout:g} seconds: {progress.text}. '
                    'The work continues.'
                )
            pause(seconds)
            seconds = min(seconds * 1.5, _LONGEST_PAUSE)
    finally:
        bar.end()


def _parse_seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float('inf'):
        raise argparse.ArgumentTypeError('must be a positive number of seconds')
    return seconds
