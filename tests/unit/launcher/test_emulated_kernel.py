# SPDX-License-Identifier: Apache-2.0
"""Tests of the kernel of the sample host."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.host import privileges
from devstack.launcher.emulated_kernel import SampleKernel

_UUID = '11111111-2222-4333-8444-555555555555'
_CREATE = 'sys/bus/pci/devices/0000:af:00.0/mdev_supported_types/nvidia-231/create'
_BOOT_ID = 'proc/sys/kernel/random/boot_id'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / 'host'


@pytest.fixture
def kernel(root: Path, tmp_path: Path) -> SampleKernel:
    return SampleKernel('t4-mdev', root, tmp_path / 'images')


def test_write_creates_mdev_until_reboot(kernel: SampleKernel, root: Path) -> None:
    kernel.write(root, _CREATE, _UUID)
    mdev, boot_id = root / 'sys/bus/mdev/devices' / _UUID, (root / _BOOT_ID).read_text()
    assert mdev.is_dir()
    kernel.reboot()
    assert not mdev.exists()
    assert (root / _BOOT_ID).read_text() != boot_id


def test_write_without_privilege_names_missing_line(
    kernel: SampleKernel, root: Path
) -> None:
    path = 'sys/bus/pci/devices/0000:af:00.0/remove'
    with pytest.raises(PermissionError, match='missing: write <function>/remove 1'):
        kernel.write(root, path, '1')


def test_write_without_emulation_keeps_text(kernel: SampleKernel, root: Path) -> None:
    """The author of a driver allows a file that the emulation does not know."""
    path = 'sys/bus/pci/devices/0000:af:00.0/power/control'
    own = root / privileges.DIRECTORY / 'acme.conf'
    own.write_text('write <function>/power/control (?:on|auto)\n')
    kernel.write(root, path, 'on')
    assert (root / path).read_text() == 'on\n'


def test_run_without_privilege_is_refused(kernel: SampleKernel, root: Path) -> None:
    with pytest.raises(PermissionError, match='missing: run /bin/sh -c'):
        kernel.run(root, 'bin/sh', ['-c'])


def test_load_reads_file_of_image_directory(tmp_path: Path) -> None:
    images = tmp_path / 'images'
    kernel = SampleKernel('fpga-intel', tmp_path / 'host', images)
    location = ['--segment', '0x0000', '-B', '0xbe', '-D', '0x00', '-F', '0x0']
    with pytest.raises(FileNotFoundError):
        kernel.load(['fpgaconf', *location, str(images / 'missing')], 1)
    with pytest.raises(PermissionError):
        kernel.load(['fpgaconf', *location, str(tmp_path / 'elsewhere')], 1)
