# SPDX-License-Identifier: Apache-2.0
"""Tests of the telemetry that sysfs provides."""

import shutil
import threading
from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.host.telemetry import CachedReadings, read_usage
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Health
from tests.hosts import sysfs_tree
from tests.hosts.sysfs_device import Plug

_CARD = '0000:3b:00.0'
_NARROW = ['16.0 GT/s PCIe', '8', '16.0 GT/s PCIe', '16']


def _usage(host: Host) -> Usage:
    return read_usage(PciFunction(host, _CARD))


def test_read_usage_healthy_card_is_ok(host: Host, plug: Plug) -> None:
    plug(_CARD, link=['2.5 GT/s PCIe', '16', '16.0 GT/s PCIe', '16'])
    usage = _usage(host)
    # An idle card lowers the speed of its link, never its width.
    assert (usage.health, usage.reason) == (Health.OK, '')
    assert usage.temperature is None


def test_read_usage_fewer_lanes_is_degraded(host: Host, plug: Plug) -> None:
    plug(_CARD, link=_NARROW)
    assert _usage(host).health is Health.DEGRADED
    assert _usage(host).reason == 'link of 8 lanes instead of 16'


def test_read_usage_guest_driver_ignores_link(host: Host, plug: Plug) -> None:
    plug(_CARD, link=_NARROW, driver='vfio-pci')
    assert _usage(host).health is Health.OK


def test_read_usage_fatal_errors_are_counted(host: Host, plug: Plug) -> None:
    """The agent assesses the errors by their rate."""
    plug(_CARD, files={'aer_dev_fatal': 'DLP 2\nTOTAL_ERR_FATAL 2'})
    assert _usage(host).health is Health.OK
    assert _usage(host).counters == {'correctable': 0, 'nonfatal': 0, 'fatal': 2}


@pytest.mark.parametrize('is_lost', [True, False])
def test_read_usage_lost_or_removed_card(host: Host, plug: Plug, is_lost: bool) -> None:
    directory: Path = plug(_CARD, lost=is_lost)
    if not is_lost:
        shutil.rmtree(directory)
    assert _usage(host).health is (Health.FAILED if is_lost else Health.GONE)


def test_read_usage_suspended_card_is_not_read(host: Host, plug: Plug) -> None:
    plug(_CARD, link=_NARROW, files={'power/runtime_status': 'suspended'})
    assert _usage(host) == Usage()


@pytest.mark.parametrize('directory', ['nvme/nvme0/hwmon3', 'hwmon/hwmon3'])
def test_read_usage_of_nvme_drive_has_temperature(
    host: Host, plug: Plug, directory: str
) -> None:
    plug(_CARD, files={f'{directory}/temp1_input': '38850'})
    assert _usage(host).temperature == 38.85


def test_read_usage_of_fpga_reads_both_monitors(host: Host) -> None:
    sysfs_tree.build('fpga-intel', host.root)
    usages = [read_usage(function) for function in host.pci_functions()]
    assert (52.0, 21.0) in [(usage.temperature, usage.power) for usage in usages]


def test_reading_beside_another_one_is_tried_again() -> None:
    """Otherwise the cards of one host that are due together would wait for ever."""
    start, end, addresses = threading.Event(), threading.Event(), []

    def read(address: str) -> dict[str, float]:
        addresses.append(address)
        start.set()
        end.wait()
        return {'temperature': 40.0}

    cached = CachedReadings(read, 3600.0)
    first = threading.Thread(target=cached.refresh, args=('0000:01:00.0',))
    first.start()
    start.wait()
    read_beside(cached)
    assert addresses == ['0000:01:00.0']
    end.set()
    first.join()
    read_beside(cached)
    assert cached.readings('0000:02:00.0') == {'temperature': 40.0}


def read_beside(cached: CachedReadings) -> None:
    """Request the readings of a second card, and wait for the read that this begins."""
    before = {*threading.enumerate()}
    cached.readings('0000:02:00.0')
    for thread in {*threading.enumerate()} - before:
        thread.join()
