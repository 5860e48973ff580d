# SPDX-License-Identifier: Apache-2.0
"""Scans of a driver on an emulated host, and its devices by address."""

from cyborg_lite.drivers.base import Driver
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult
from cyborg_lite.testing.preparation_checks import build_handle


def scan(driver: Driver) -> dict[str, DiscoveryResult]:
    """Return the results of one scan."""
    return {result.address: result for result in driver.discover()}


def find_device(driver: Driver, address: str) -> Device:
    """Return the device at an address after a scan."""
    result = scan(driver)[address]
    assert result.device is not None, result.reason
    return result.device


def build_handles(device: Device) -> list[AllocatedHandle]:
    """Return the handles of the root of a device, as ARQs get them."""
    return [build_handle(device, device.root, item) for item in device.root.handles]
