# SPDX-License-Identifier: Apache-2.0
"""Tests of the driver for network cards of several vendors."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.network.sriov_nic import SriovNic
from cyborg_lite.model.inventory import Device
from tests.hosts import sysfs_tree

_X710 = '0000:18:00.0'


@pytest.fixture
def devices(tmp_path: Path) -> dict[str, Device]:
    """Return the devices of a host with QAT cards and a network card, by address."""
    sysfs_tree.build('qat-x710', tmp_path)
    driver = SriovNic(Host('compute-1', tmp_path), {'offer_without_reset': False})
    results = driver.discover()
    return {result.address: result.device for result in results if result.device}


def test_discover_offers_network_cards_only(devices: dict[str, Device]) -> None:
    assert {device.type for device in devices.values()} == {'NIC'}
    assert devices[_X710].vendor == '8086'
    assert devices[_X710].model == SriovNic.MODELS['8086:1572']


def test_port_is_offered_whole_or_as_functions(devices: dict[str, Device]) -> None:
    whole_port = devices['0000:18:00.1'].root
    shared_port = devices[_X710].root
    assert {'CUSTOM_PF'} < set(whole_port.traits)
    assert {'CUSTOM_VF'} < set(shared_port.traits)
    assert [handle.key for handle in whole_port.handles] == ['0000:18:00.1']
    assert _X710 not in {handle.key for handle in shared_port.handles}
    assert len(shared_port.handles) > 1
