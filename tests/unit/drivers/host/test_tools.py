# SPDX-License-Identifier: Apache-2.0
"""Tests of running vendor tools: no shell, a time limit, allowed commands only."""

import os
import select
import sys
from pathlib import Path

import pytest

from cyborg_lite.drivers.host import privileged, privileges
from cyborg_lite.drivers.host.kernel import PrivilegedKernel
from cyborg_lite.drivers.host.tools import ToolResult, Tools
from cyborg_lite.errors.drivers import DriverError, ToolMissing, ToolTimedOut

_run = Tools(PrivilegedKernel())
_PRINT = 'import sys; print(sys.argv[1:]); print("bad", file=sys.stderr); sys.exit(3)'


def test_execute_does_not_use_shell(tmp_path: Path) -> None:
    trap = tmp_path / 'trap'
    argument = f'; touch {trap}; $(touch {trap})'
    _, output = privileged.execute([sys.executable, '-c', _PRINT, argument], 30)
    assert argument in output
    assert not trap.exists()


def test_execute_timeout_kills_children(tmp_path: Path) -> None:
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
    """Return True if a process ends within 30 seconds."""
    try:
        watched = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], 30)[0])
    finally:
        os.close(watched)


@pytest.fixture
def root(tmp_path: Path, as_root: None) -> Path:
    file = tmp_path / privileges.DIRECTORY / 'driver.conf'
    file.parent.mkdir(parents=True)
    file.write_text('run /bin/fpgaconf -B [0-9a-fx]+\n')
    file.chmod(0o644)
    return tmp_path


def _tool(root: Path, script: str) -> str:
    path = root / 'bin/fpgaconf'
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\n{script}\n')
    path.chmod(0o755)
    return str(path)


def test_tools_run_returns_result(root: Path) -> None:
    tool = _tool(root, 'echo loaded $2; exit 0')
    for name in (tool, 'fpgaconf'):
        assert _run([name, '-B', '0x5e'], 30) == ToolResult(0, 'loaded 0x5e\n')


def test_tools_timeout_raises(root: Path) -> None:
    with pytest.raises(ToolTimedOut, match=r'timed out after 0\.2 s'):
        _run([_tool(root, 'exec sleep 600'), '-B', '0'], 0.2)


@pytest.mark.usefixtures('root')
def test_tools_missing_program_raises() -> None:
    with pytest.raises(ToolMissing):
        _run(['fpgaconf', '-B', '0'], 30)


@pytest.mark.usefixtures('root')
def test_tools_other_program_raises() -> None:
    with pytest.raises(DriverError, match='missing: run /PATH/OF/sh'):
        _run(['sh', '-B', '0'], 30)


@pytest.mark.parametrize('argument', ['a b', 'x\n', '', '$(id)', 'a' * 600])
def test_tools_invalid_argument_raises(argument: str, root: Path) -> None:
    with pytest.raises(DriverError, match='not allowed'):
        _run([_tool(root, 'exit 0'), argument], 30)


def test_summary_is_one_short_line() -> None:
    result = ToolResult(1, 'no\x00 such\n\ndevice ' + 'x' * 500)
    assert result.summary.startswith('exit status 1: ')
    assert '\n' not in result.summary
    assert len(result.summary) < 230
    assert ToolResult(1).summary == 'exit status 1: no output'
