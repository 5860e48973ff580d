# SPDX-License-Identifier: Apache-2.0
"""Tests of the privileges files: their lines, their safety and the suggested lines.

test_privileged.py attacks the process that applies them.
"""

from pathlib import Path
from typing import Final

import pytest

from cyborg_lite.drivers.host import privileges

_CARD: Final = '/sys/devices/pci0000:3a/0000:3b:00.0'
_UUID: Final = '5f7ef0cd-8b0c-4f35-92b5-5a0d6a8c1d2e'


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


def test_check_owner_link_out_of_root_is_refused(
    directory: Path, tmp_path: Path
) -> None:
    outside = tmp_path.with_name(f'{tmp_path.name}-outside')
    _write(outside, 'run /a/tool -x')
    (directory / 'link.conf').symlink_to(outside)
    with pytest.raises(PermissionError, match='leads out of'):
        privileges.check_owner(str(directory / 'link.conf'), str(tmp_path))
