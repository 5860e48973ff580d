# SPDX-License-Identifier: Apache-2.0
"""The cheap sign changes when a look at the hardware is worth it, and at no read."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cyborg_lite.agent.fingerprint import fingerprint
from cyborg_lite.drivers.sysfs import Host
from tests.fakes.kernel import FakeKernel

CARD = '0000:3b:00.0'
MDEV = 'fa000000-0000-4000-8000-000000000001'


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel('t4-mdev', tmp_path)


def directory(kernel: FakeKernel) -> Path:
    return kernel.root / 'sys/bus/pci/devices' / CARD


def unplug(kernel: FakeKernel) -> None:
    directory(kernel).unlink()


def rebind(kernel: FakeKernel) -> None:
    link = directory(kernel) / 'driver'
    link.unlink()
    other = kernel.root / 'sys/bus/pci/drivers/vfio-pci'
    other.mkdir(parents=True)
    link.symlink_to(other)


def unbind(kernel: FakeKernel) -> None:
    (directory(kernel) / 'driver').unlink()


def make_mdev(kernel: FakeKernel) -> None:
    path = f'{CARD}/mdev_supported_types/nvidia-231/create'
    kernel.write(kernel.root, f'sys/bus/pci/devices/{path}', MDEV)


def take_types(kernel: FakeKernel) -> None:
    shutil.rmtree(kernel.root / 'sys/class/mdev_bus')


@pytest.mark.parametrize('change', [unplug, rebind, unbind, make_mdev, take_types])
def test_it_is_another_one_after_a_change(
    kernel: FakeKernel, change: Callable[[FakeKernel], None]
) -> None:
    host = Host('compute-1', kernel.root)
    before = fingerprint(host)
    assert fingerprint(host) == before
    change(kernel)
    assert fingerprint(host) != before


def test_no_file_is_read_for_it(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is read may wake a device that sleeps, or never answer."""

    def read(_host: Host, path: str, _size: int = 0) -> bytes:
        raise AssertionError(f'{path} is read')

    monkeypatch.setattr(Host, 'raw', read)
    fingerprint(Host('compute-1', kernel.root))


def test_a_host_without_any_device_has_one(tmp_path: Path) -> None:
    assert fingerprint(Host('compute-1', tmp_path)) == fingerprint(
        Host('compute-2', tmp_path)
    )
