# SPDX-License-Identifier: Apache-2.0
"""Errors of the command-line tools."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest

from cyborg_lite.cmd.support.one_line_errors import one_line_errors
from cyborg_lite.errors.daemons import ConfigurationError


def run(error: BaseException, arguments: Sequence[str] = (), status: int = 2) -> int:
    """Run a command that fails with the error; return its exit status."""

    @one_line_errors('prog', status)
    def main(arguments: Sequence[str] | None = None) -> int:
        raise error

    return main(arguments)


@pytest.mark.parametrize(
    ('error', 'text'),
    [
        (ConfigurationError(reason='Bad value.'), 'prog: Bad value. Correct'),
        (FileNotFoundError(2, 'No such file', '/x'), 'prog: [Errno 2] No such file'),
        (KeyError('x\ny'), 'prog: unexpected KeyError: '),
        (SystemExit('prog: bad option'), 'prog: bad option'),
    ],
)
def test_error_is_one_line_on_standard_error(
    error: BaseException, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(error) == 2
    output = capsys.readouterr()
    assert output.err.startswith(text)
    assert output.err.count('\n') == 1
    assert output.out == ''


def test_debug_shows_unexpected_error() -> None:
    with pytest.raises(KeyError):
        run(KeyError('x'), ['--debug'])


@pytest.mark.parametrize('code', [0, 3, None])
def test_numeric_exit_is_kept(code: int | None) -> None:
    with pytest.raises(SystemExit) as caught:
        run(SystemExit(code))
    assert caught.value.code == code


def test_interrupt_returns_status_of_shell() -> None:
    assert run(KeyboardInterrupt()) == 130


@pytest.mark.parametrize('arguments', [['--help'], ['ownership']])
def test_closed_pipe_ends_command_silently(
    write_config: Callable[..., list[str]], arguments: list[str]
) -> None:
    """The output is small, so Python writes it only at the end of the process."""
    reader, writer = os.pipe()
    os.close(reader)
    completed = subprocess.run(
        [
            sys.executable,
            '-m',
            'cyborg_lite.cmd.manage.main',
            *write_config(),
            *arguments,
        ],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (completed.returncode, completed.stderr) == (0, '')
