# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver contract with the drivers of this package."""

from contextlib import suppress

import pytest

from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.fake import FakeDriver
from cyborg_lite.drivers.gpus.amd import AmdGpu
from cyborg_lite.drivers.gpus.intel import IntelGpu
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from tests.hosts import sysfs_tree

# mypy checks that each class conforms to the protocol.
SHIPPED: tuple[type[Driver], ...] = (AmdGpu, FakeDriver, IntelGpu, NvidiaGpu)


@pytest.mark.parametrize('driver_class', SHIPPED)
def test_drivers_init_reads_no_file(
    driver_class: type[Driver], host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths: list[str] = []
    for method in ('raw', 'names'):
        monkeypatch.setattr(Host, method, lambda _host, path, *_: paths.append(path))
    driver = driver_class(host, {})
    assert paths == []
    with suppress(TypeError):  # of the missing file names
        list(driver.discover())
    assert bool(paths) is (driver_class is not FakeDriver)


def test_whole_card_handle_does_not_need_host(host: Host) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    results = NvidiaGpu(host, {'offer_without_reset': False}).discover()
    devices = [result.device for result in results if result.device]
    (handle,) = (handle for device in devices for handle in device.root.handles)
    assert not handle.needs_host
