# SPDX-License-Identifier: Apache-2.0
"""Nothing but what drivers need can be done as root."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.drivers import privileged

_FILE = 'sys/bus/pci/devices/0000:3b:00.0/sriov_numvfs'


@pytest.fixture(autouse=True)
def as_root() -> Iterator[None]:
    """The functions as the privileged process runs them."""
    context: Any = privileged.CONTEXT  # the library has no types
    context.set_client_mode(False)
    yield
    context.set_client_mode(True)


def _host(root: Path, path: str = _FILE) -> Path:
    file = root / path
    file.parent.mkdir(parents=True)
    file.write_text('0')
    return file


@pytest.mark.parametrize(
    'path',
    [
        'etc/shadow',
        'sys/bus/pci/devices/0000:3b:00.0/remove',
        'sys/bus/pci/devices/0000:3b:00.0/../../sriov_numvfs',
        'sys/bus/pci/devices/0000:3b:00.0/mdev_supported_types/../create',
        'sys/bus/mdev/devices/../remove',
        '/sys/bus/pci/devices/0000:3b:00.0/sriov_numvfs',
    ],
)
def test_other_files_are_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match='not a file'):
        privileged.write(str(tmp_path), path, '1')


def test_a_file_that_is_not_the_kernels_is_refused(tmp_path: Path) -> None:
    """However a link may lead to it."""
    file = _host(tmp_path)
    with pytest.raises(PermissionError, match='not a file of the kernel'):
        privileged.write(str(tmp_path), _FILE, '4')
    assert file.read_text() == '0'


def test_a_file_of_the_kernel_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _host(tmp_path)
    devices = frozenset({file.stat().st_dev})
    monkeypatch.setattr(privileged, '_sysfs_devices', lambda: devices)
    privileged.write(str(tmp_path), _FILE, '4')
    assert file.read_text() == '4'


def test_a_file_that_has_gone_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = _host(tmp_path)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        privileged.write(str(tmp_path), _FILE, '4')
    assert not file.exists()


def test_the_kernels_file_systems_are_known_by_type() -> None:
    assert Path('/sys').stat().st_dev in privileged._sysfs_devices()
    assert Path('/').stat().st_dev not in privileged._sysfs_devices()


def test_a_tool_is_run_with_its_arguments(tmp_path: Path) -> None:
    tool = tmp_path / privileged.TOOLS['sriov-manage']
    tool.parent.mkdir(parents=True)
    tool.write_text('#!/bin/sh\necho "$@"\nexit 3\n')
    tool.chmod(0o755)
    given = ['-e', '0000:3b:00.0']
    assert privileged.run(str(tmp_path), 'sriov-manage', given) == (
        3,
        '-e 0000:3b:00.0\n',
    )
    with pytest.raises(PermissionError):
        privileged.run(str(tmp_path), 'sriov-manage', ['; reboot'])
    with pytest.raises(KeyError):
        privileged.run(str(tmp_path), 'reboot', [])
