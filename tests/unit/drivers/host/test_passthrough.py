# SPDX-License-Identifier: Apache-2.0
"""Tests of the choice of one function per IOMMU group."""

from cyborg_lite.drivers.host.passthrough import IommuGroups
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from tests.hosts.sysfs_device import Plug

_FIRST, _SECOND = '0000:0c:00.0', '0000:0d:00.0'


def _find_obstacle(groups: IommuGroups, host: Host, address: str) -> str | None:
    return groups.find_obstacle(PciFunction(host, address), lambda member: True)


def test_find_obstacle_used_function_stays_chosen(host: Host, plug: Plug) -> None:
    """A guest gets the second function, so all drivers of the group are vfio-pci."""
    groups = IommuGroups()
    plug(_FIRST, driver='vfio-pci')
    plug(_SECOND, driver='devdrv_device_driver')
    assert _find_obstacle(groups, host, _SECOND) is None
    plug(_SECOND, driver='vfio-pci')
    assert _find_obstacle(groups, host, _SECOND) is None
    obstacle = _find_obstacle(groups, host, _FIRST)
    assert obstacle == f'IOMMU group 7 goes to one guest with {_SECOND}'


def test_find_obstacle_restored_choice_precedes_order(host: Host, plug: Plug) -> None:
    plug(_FIRST, driver='vfio-pci')
    plug(_SECOND, driver='vfio-pci')
    assert _find_obstacle(IommuGroups(), host, _FIRST) is None
    groups = IommuGroups()
    groups.chosen.add(_SECOND)
    assert _find_obstacle(groups, host, _SECOND) is None
    assert _find_obstacle(groups, host, _FIRST) is not None
