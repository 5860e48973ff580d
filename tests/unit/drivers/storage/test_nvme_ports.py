# SPDX-License-Identifier: Apache-2.0
"""Tests of the choice between the controllers of one drive."""

from dataclasses import replace

from cyborg_lite.drivers.storage.nvme_ports import DrivePorts
from cyborg_lite.model.inventory.host_report import DiscoveryResult
from tests.builders.reports import card

_FIRST, _SECOND = '0000:3b:00.0', '0000:5e:00.0'


def build_result(bus: int, model: str = 'PM1733') -> DiscoveryResult:
    """Return the result of a controller; the serial number is that of all others."""
    device = replace(card(bus, serial='S4YN'), model=model)
    return DiscoveryResult(
        device.control_address, '144d:a824', '010802', 'nvme', '', device
    )


def list_offered(ports: DrivePorts, *results: DiscoveryResult) -> list[str]:
    return [
        result.address
        for result in ports.resolve(results)
        if result.device is not None and result.device.root.handles
    ]


def test_lowest_address_is_offered_in_any_order() -> None:
    ports = DrivePorts(lambda address: None)
    assert list_offered(ports, build_result(0x5E), build_result(0x3B)) == [_FIRST]
    assert ports.find_obstacle(_FIRST) is None
    assert ports.find_obstacle(_SECOND) == f'same drive as {_FIRST}: serial number S4YN'


def test_remaining_port_is_offered_and_stays() -> None:
    ports = DrivePorts(lambda address: None)
    results = build_result(0x3B), build_result(0x5E)
    assert list_offered(ports, *results) == [_FIRST]
    assert list_offered(ports, results[1]) == [_SECOND]
    assert list_offered(ports, *results) == [_SECOND]


def test_drives_of_other_models_are_independent() -> None:
    ports = DrivePorts(lambda address: None)
    drives = build_result(0x3B), build_result(0x5E, model='PM9A3')
    assert list_offered(ports, *drives) == [_FIRST, _SECOND]


def test_drive_in_use_by_host_is_offered_nowhere() -> None:
    ports = DrivePorts({_SECOND: '/srv is mounted'}.get)
    assert list_offered(ports, build_result(0x3B), build_result(0x5E)) == []
    reason = f'in use by the host through {_SECOND}: /srv is mounted'
    assert ports.find_obstacle(_FIRST) == reason
