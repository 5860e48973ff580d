# SPDX-License-Identifier: Apache-2.0
"""Errors of the command-line tools: one line on standard error, never a traceback."""

import functools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from oslo_config import cfg

from cyborg_lite.errors.base import CyborgError

_INTERRUPTED: Final = 130  # as a shell reports SIGINT


class Main(Protocol):
    """The function of a command."""

    def __call__(self, arguments: Sequence[str] | None = None) -> int:
        """Run the command; return its exit status.

        :param arguments: None: those of the process
        """
        ...


def one_line_errors(prog: str, status: int) -> Callable[[Main], Main]:
    """Return a decorator for the function of a command.

    The option ``--debug`` shows the traceback of an unexpected error.

    :param status: exit status of a command that failed
    """

    def decorate(main: Main) -> Main:
        @functools.wraps(main)
        def run(arguments: Sequence[str] | None = None) -> int:
            return _run(main, arguments, prog, status)

        return run

    return decorate


def _run(main: Main, arguments: Sequence[str] | None, prog: str, status: int) -> int:
    """Run the command; print its error and return the exit status."""
    try:
        exit_status = main(arguments)
        # A closed pipe is then reported here and not at the end of the process.
        sys.stdout.flush()
        return exit_status
    except SystemExit as error:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            _discard_output()
        # Python prints a text and exits with 1.
        if not isinstance(error.code, str) or status == 1:
            raise
        print(error.code, file=sys.stderr)
        return status
    except BrokenPipeError:
        _discard_output()
        return 0
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:
        # An operator cannot use a traceback; a developer can ask for it.
        if '--debug' in (sys.argv if arguments is None else arguments):
            raise
        print(f'{prog}: {_describe_error(error)}', file=sys.stderr)
        return status


def _discard_output() -> None:
    """Keep Python from writing to a reader, such as ``head``, that has ended."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _describe_error(error: Exception) -> str:
    if isinstance(error, CyborgError):
        return error.full_text
    text = ' '.join(str(error).split())
    if isinstance(error, cfg.Error | OSError):
        return text
    name = type(error).__name__
    return f'unexpected {name}: {text} Run the command with --debug.'
