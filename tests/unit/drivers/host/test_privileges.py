# SPDX-License-Identifier: Apache-2.0
"""Tests of the privileges files: their lines, their safety and the suggested lines.

test_privileged.py attacks the process that applies them.
"""

import os
from pathlib import Path
from typing import Final

import pytest

from cyborg_lite.drivers.host import privileges
from cyborg_lite.drivers.host.privileges import InvalidLine

_CARD: Final = '/sys/devices/pci0000:3a/0000:3b:00.0'
_UUID: Final = '5f7ef0cd-8b0c-4f35-92b5-5a0d6a8c1d2e'
_TEXT: Final = r"""
# A comment, and lines with spaces around them.
  write <function>/sriov_numvfs [0-9]{1,4}
write /sys/bus/mdev/devices/<uuid>/remove 1
run /usr/sbin/tool -[ed] <address>
run /opt/bin/tool --all
run /opt/bin/tool --none
"""


@pytest.mark.parametrize(
    ('path', 'value', 'expected'),
    [
        (f'{_CARD}/sriov_numvfs', '16', True),
        (f'{_CARD}/sriov_numvfs', '16 ', False),
        (f'{_CARD}/sriov_numvfs', '٤', False),  # a digit outside ASCII
        (f'{_CARD}/sriov_numvfs/x', '16', False),
        (f'/tmp{_CARD}/sriov_numvfs', '16', False),
        ('/sys/devices/pci0000:3a/0000:3b:00.9/sriov_numvfs', '16', False),
        ('/sys/devices/pci0000:3a/sriov_numvfs', '16', False),
        (f'/sys/bus/mdev/devices/{_UUID}/remove', '1', True),
        (f'/sys/bus/mdev/devices/{_UUID.upper()}/remove', '1', False),
        (f'/sys/bus/mdev/devices/{_UUID}/remove', '0', False),
    ],
)
def test_allows_write_compares_path_and_value(
    path: str, value: str, expected: bool
) -> None:
    assert privileges.parse(_TEXT).allows_write(path, value) is expected


@pytest.mark.parametrize(
    ('tool', 'arguments', 'expected'),
    [
        ('/usr/sbin/tool', ['-e', '0000:3b:00.0'], True),
        ('/usr/sbin/tool', ['-e 0000:3b:00.0'], True),
        ('/usr/sbin/tool', ['-e', '0000:3b:00.0', ''], False),
        ('/usr/sbin/tool', ['--all'], False),
        ('/opt/bin/tool', ['--all'], True),
        ('/opt/bin/tool', ['-e', '0000:3b:00.0'], False),
        ('tool', ['--all'], False),
    ],
)
def test_allows_run_compares_tool_and_arguments(
    tool: str, arguments: list[str], expected: bool
) -> None:
    assert privileges.parse(_TEXT).allows_run(tool, arguments) is expected


def test_list_tools_returns_each_path_once() -> None:
    parsed = privileges.parse(_TEXT)
    assert list(parsed.list_tools('tool')) == ['/usr/sbin/tool', '/opt/bin/tool']
    assert list(parsed.list_tools('bin')) == []


@pytest.mark.parametrize(
    ('line', 'words'),
    [
        ('write', 'line 2 has no path and pattern'),
        ('write /sys/x', 'line 2 has no path and pattern'),
        ('write sys/x 1', 'line 2 has no path and pattern'),
        ('write /sys/x 1 2', 'line 2 is neither'),
        ('delete /sys/x 1', 'line 2 is neither'),
        ('run tool -e', 'line 2 has no path and pattern'),
        ('run /usr/../tool -e', 'line 2 is neither'),
        ('run /usr/bin/tool (', 'no regular expression'),
    ],
)
def test_parse_invalid_line_is_named(line: str, words: str) -> None:
    with pytest.raises(InvalidLine, match=words):
        privileges.parse(f'# comment\n{line}\n')


@pytest.mark.parametrize(
    ('path', 'value', 'line'),
    [
        (f'{_CARD}/a.b', '1', r'write <function>/a\.b 1'),
        (f'/sys/x/{_UUID}/remove', '1', 'write /sys/x/<uuid>/remove 1'),
        (f'{_CARD}/create', _UUID, 'write <function>/create <uuid>'),
        ('/sys/x', '[1]', r'write /sys/x \[1\]'),
    ],
)
def test_suggest_write_line_allows_the_write(path: str, value: str, line: str) -> None:
    assert privileges.suggest_write(path, value) == line
    assert privileges.parse(line).allows_write(path, value)
    assert not privileges.parse(line).allows_write(path.replace('.', 'x'), 'other')


def test_suggest_run_line_allows_the_command() -> None:
    arguments = ['-e', '0000:3b:00.0', '--file=a+b']
    line = privileges.suggest_run('/usr/bin/tool', arguments)
    assert line == r'run /usr/bin/tool -e <address> --file=a\+b'
    assert privileges.parse(line).allows_run('/usr/bin/tool', arguments)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return the empty directory of the privileges files of a host."""
    directory = tmp_path / privileges.DIRECTORY
    directory.mkdir(parents=True)
    return directory


def _write(file: Path, text: str, mode: int = 0o644) -> None:
    file.write_text(text)
    file.chmod(mode)


def test_load_joins_conf_files_in_order(directory: Path, tmp_path: Path) -> None:
    _write(directory / 'b.conf', 'run /b/tool -x')
    _write(directory / 'a.conf', 'run /a/tool -x')
    _write(directory / 'c.conf.orig', 'run /c/tool -x')
    tools = privileges.load(str(tmp_path)).list_tools('tool')
    assert list(tools) == ['/a/tool', '/b/tool']


def test_load_ignores_unsafe_and_invalid_files(
    directory: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _write(directory / 'open.conf', 'run /a/tool -x', mode=0o664)
    _write(directory / 'invalid.conf', 'nonsense')
    _write(directory / 'large.conf', '#' * 70_000)
    os.mkfifo(directory / 'fifo.conf')
    _write(directory / 'valid.conf', 'run /b/tool -x')
    assert list(privileges.load(str(tmp_path)).list_tools('tool')) == ['/b/tool']
    for name in ('open', 'invalid', 'large', 'fifo'):
        assert f'{name}.conf is ignored' in caplog.text


def test_load_missing_directory_allows_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert privileges.load(str(tmp_path)) == privileges.Privileges()
    assert 'cannot be read' in caplog.text


def test_check_owner_link_out_of_root_is_refused(
    directory: Path, tmp_path: Path
) -> None:
    outside = tmp_path.with_name(f'{tmp_path.name}-outside')
    _write(outside, 'run /a/tool -x')
    (directory / 'link.conf').symlink_to(outside)
    with pytest.raises(PermissionError, match='leads out of'):
        privileges.check_owner(str(directory / 'link.conf'), str(tmp_path))


def test_check_owner_target_directory_is_checked(
    directory: Path, tmp_path: Path
) -> None:
    """A user who can write to the directory of the target can exchange the target."""
    real = tmp_path / 'open/real.conf'
    real.parent.mkdir()
    _write(real, 'run /a/tool -x')
    (directory / 'link.conf').symlink_to(real)
    privileges.check_owner(str(directory / 'link.conf'), str(tmp_path))
    real.parent.chmod(0o777)
    with pytest.raises(PermissionError, match=r'can write to .*/open'):
        privileges.check_owner(str(directory / 'link.conf'), str(tmp_path))


@pytest.mark.parametrize(
    ('path', 'expected'),
    [('/a/b', True), ('/a/b/c', True), ('/a', False), ('/a/bc', False)],
)
def test_is_below_compares_whole_parts(path: str, expected: bool) -> None:
    assert privileges.is_below(path, '/a/b') is expected
