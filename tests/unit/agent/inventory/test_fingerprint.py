# SPDX-License-Identifier: Apache-2.0
"""Tests of the fingerprint of device names and links in sysfs."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cyborg_lite.agent.inventory.hardware_monitor import compute_fingerprint
from cyborg_lite.drivers.host.sysfs import Host
from tests.hosts.kernel import FakeKernel

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
    other_driver = kernel.root / 'sys/bus/pci/drivers/vfio-pci'
    other_driver.mkdir(parents=True)
    link.symlink_to(other_driver)


def unbind(kernel: FakeKernel) -> None:
    (directory(kernel) / 'driver').unlink()


def make_mdev(kernel: FakeKernel) -> None:
    path = f'{CARD}/mdev_supported_types/nvidia-231/create'
    kernel.write(kernel.root, f'sys/bus/pci/devices/{path}', MDEV)


def remove_mdev_types(kernel: FakeKernel) -> None:
    shutil.rmtree(kernel.root / 'sys/class/mdev_bus')


@pytest.mark.parametrize(
    'change', [unplug, rebind, unbind, make_mdev, remove_mdev_types]
)
def test_fingerprint_changes_with_names_and_links(
    kernel: FakeKernel, change: Callable[[FakeKernel], None]
) -> None:
    host = Host('compute-1', kernel.root)
    before = compute_fingerprint(host)
    assert compute_fingerprint(host) == before
    change(kernel)
    assert compute_fingerprint(host) != before


def test_fingerprint_reads_no_file(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read may wake a suspended device or never return."""

    paths: list[str] = []
    monkeypatch.setattr(Host, 'raw', lambda _host, path, *_: paths.append(path))
    assert compute_fingerprint(Host('compute-1', kernel.root))
    assert paths == []


def test_fingerprint_of_empty_host_is_constant(tmp_path: Path) -> None:
    assert compute_fingerprint(Host('compute-1', tmp_path)) == compute_fingerprint(
        Host('compute-2', tmp_path)
    )
