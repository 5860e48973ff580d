# SPDX-License-Identifier: Apache-2.0
"""Tests of the cleaning steps of any PCI function."""

import errno
import json
import threading
from pathlib import Path
from typing import Final

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.pci.generic import GenericPci
from cyborg_lite.errors.drivers import DeviceBusy, DeviceGone, DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from cyborg_lite.testing.preparation_checks import build_handle
from tests.hosts.kernel import FakeKernel
from tests.hosts.nvme_tools import NvmeKernel

_PARENT, _VIRTUAL, _DRIVE = '0000:21:00.0', '0000:21:00.1', '0000:c2:00.0'
_ABORT: Final = threading.Event()


class Site:
    """A host whose operator allows functions, with the first handle of a device."""

    def __init__(self, kernel: FakeKernel, address: str, vendor: str) -> None:
        self.kernel = kernel
        entry = {'vendor_id': vendor, 'cleaning': 'after-use'}
        options = {'offer_without_reset': True, 'device_spec': [json.dumps(entry)]}
        self.driver = GenericPci(Host('compute-1', kernel.root, kernel), options)
        self.handle = self._find_handle(address)

    def _find_handle(self, address: str) -> AllocatedHandle:
        for result in self.driver.discover():
            if result.address == address and result.device is not None:
                root = result.device.root
                assert root.handles[0].cleaning is CleaningPolicy.AFTER_USE
                return build_handle(result.device, root, root.handles[0])
        raise LookupError(address)

    def clean(self) -> list[str]:
        steps = self.driver.list_clean_steps(self.handle)
        return [
            self.driver.run_clean_step(self.handle, step.name, _ABORT) for step in steps
        ]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(FakeKernel('generic-pci', tmp_path), _PARENT, '1d55')


def test_clean_resets_function(site: Site) -> None:
    assert site.clean() == ['']
    path = f'sys/bus/pci/devices/{_VIRTUAL}/reset'
    assert site.kernel.written == [(path, '1')]


def test_clean_waits_while_guest_has_function(site: Site) -> None:
    site.kernel.open('/dev/vfio/62')
    with pytest.raises(DeviceBusy, match='open in process 4242'):
        site.clean()
    assert site.kernel.written == []


def test_refused_reset_fails(site: Site) -> None:
    site.kernel.refuse('reset', errno.ENOTTY)
    with pytest.raises(DriverError, match='cannot be reset'):
        site.clean()


def test_lost_function_is_not_clean(site: Site) -> None:
    site.kernel.lose(_VIRTUAL)
    with pytest.raises(DeviceGone):
        site.clean()


def test_removed_virtual_function_is_clean(site: Site) -> None:
    site.kernel.disable(_PARENT)
    assert site.clean() == ['']


def test_function_without_reset_fails(tmp_path: Path) -> None:
    kernel = FakeKernel('generic-pci', tmp_path)
    directory = (tmp_path / 'sys/bus/pci/devices' / _VIRTUAL).resolve()
    for name in ('reset', 'reset_method'):
        (directory / name).unlink()
    site = Site(kernel, _PARENT, '1d55')
    with pytest.raises(DriverError, match='cannot reset'):
        site.clean()


def test_clean_erases_drive(tmp_path: Path) -> None:
    kernel = NvmeKernel('nvme-lvm', tmp_path)
    site = Site(kernel, _DRIVE, '8086')
    assert site.clean() == ['nvme version 2.8 (git 2.8)', '']
    assert kernel.tools.erases() == ['nvme sanitize /dev/nvme1 --sanact=4']
