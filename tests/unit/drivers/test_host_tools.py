# SPDX-License-Identifier: Apache-2.0
"""Tools are run without a shell, in time, and only those that load bitstreams."""

import os
import select
import sys
from pathlib import Path

import pytest

from cyborg_lite.drivers import privileged
from cyborg_lite.drivers.host_tools import Outcome, Tools
from cyborg_lite.drivers.kernel import PrivilegedKernel
from cyborg_lite.exceptions import DriverError, ToolMissing, ToolTimedOut

_run = Tools(PrivilegedKernel())
_PRINT = 'import sys; print(sys.argv[1:]); print("bad", file=sys.stderr); sys.exit(3)'


def test_status_and_both_outputs_are_kept() -> None:
    status, output = privileged.execute([sys.executable, '-c', _PRINT, 'a b'], 30)
    assert status == 3
    assert "['a b']" in output
    assert 'bad' in output


def test_an_argument_is_never_read_by_a_shell(tmp_path: Path) -> None:
    trap = tmp_path / 'trap'
    argument = f'; touch {trap}; $(touch {trap})'
    _, output = privileged.execute([sys.executable, '-c', _PRINT, argument], 30)
    assert argument in output
    assert not trap.exists()


def test_the_environment_of_the_daemon_stays_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv('OS_PASSWORD', 'secret')
    code = 'import os; print(sorted(os.environ))'
    _, output = privileged.execute([sys.executable, '-c', code], 30)
    assert 'OS_PASSWORD' not in output


def test_one_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    child = tmp_path / 'child'
    code = (
        'import subprocess, sys, time;'
        'p = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]);'
        f'open({str(child)!r}, "w").write(str(p.pid)); time.sleep(600)'
    )
    status, _ = privileged.execute([sys.executable, '-c', code], 2.0)
    assert status is None
    assert _has_ended(int(child.read_text()))


def _has_ended(process: int) -> bool:
    """Only a failing test waits for it."""
    try:
        watched = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], 30)[0])
    finally:
        os.close(watched)


def test_a_program_that_is_not_there_says_so() -> None:
    with pytest.raises(OSError, match='No such file'):
        privileged.execute(['/nonexistent/fpgaconf'], 1)


@pytest.fixture
def as_this_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: the other one needs root to be started."""
    monkeypatch.setattr(privileged.CONTEXT, 'client_mode', False)


def _tool(tmp_path: Path, script: str) -> str:
    path = tmp_path / 'fpgaconf'
    path.write_text(f'#!/bin/sh\n{script}\n')
    path.chmod(0o755)
    return str(path)


@pytest.mark.usefixtures('as_this_user')
def test_a_tool_is_run(tmp_path: Path) -> None:
    tool = _tool(tmp_path, 'echo loaded $2; exit 0')
    assert _run([tool, '-B', '0x5e'], 30) == Outcome(0, 'loaded 0x5e\n')


@pytest.mark.usefixtures('as_this_user')
def test_a_tool_that_hangs_has_timed_out(tmp_path: Path) -> None:
    with pytest.raises(ToolTimedOut, match=r'did not end in 0\.2 seconds'):
        _run([_tool(tmp_path, 'exec sleep 600')], 0.2)


@pytest.mark.usefixtures('as_this_user')
def test_a_tool_that_is_not_installed_is_missing() -> None:
    with pytest.raises(ToolMissing):
        _run(['/nonexistent/fpgaconf'], 30)


@pytest.mark.usefixtures('as_this_user')
def test_only_tools_that_load_are_run() -> None:
    with pytest.raises(DriverError, match='not a tool that loads'):
        _run(['/bin/sh', '-c', 'x'], 30)


@pytest.mark.usefixtures('as_this_user')
@pytest.mark.parametrize('argument', ['a b', 'x\n', '', '$(id)', 'a' * 600])
def test_odd_arguments_are_refused(argument: str, tmp_path: Path) -> None:
    with pytest.raises(DriverError, match='not an argument'):
        _run([_tool(tmp_path, 'exit 0'), argument], 30)


@pytest.mark.usefixtures('as_this_user')
@pytest.mark.parametrize(
    ('arguments', 'runs'),
    [
        ('program --device 0000:d8:00.0 --shell /images/a', True),
        ('program --device 0000:d8:00.0 --base /images/a', False),
        ('program --device 0000:d8:00.0 --shell /images/a --base', False),
        ('reset --device 0000:d8:00.0', False),
    ],
)
def test_what_writes_the_flash_of_a_card_is_never_run(
    arguments: str, runs: bool, tmp_path: Path
) -> None:
    tool = tmp_path / 'xbmgmt'
    Path(_tool(tmp_path, 'exit 0')).rename(tool)
    command = [str(tool), *arguments.split()]
    if runs:
        assert _run(command, 30).status == 0
        return
    with pytest.raises(DriverError, match='more than load a shell'):
        _run(command, 30)


def test_a_summary_is_one_short_line() -> None:
    outcome = Outcome(1, 'no\x00 such\n\ndevice ' + 'x' * 500)
    assert outcome.summary.startswith('exit status 1: ')
    assert '\n' not in outcome.summary
    assert len(outcome.summary) < 230
    assert Outcome(1).summary == 'exit status 1: no word'
