# SPDX-License-Identifier: Apache-2.0
"""Topologies of hosts for tests of their pictures and of the API."""

from dataclasses import replace
from typing import Final
from uuid import NAMESPACE_DNS, uuid3

from cyborg_lite.model.hosts.topology import (
    Availability,
    HostTopology,
    TopologyDeployable,
    TopologyDevice,
    TopologyUnit,
    UnitUser,
    group_by_numa_node,
)
from cyborg_lite.model.inventory.host_report import Health

HOST: Final = 'compute-1'
PROJECT: Final = 'b' * 32
HOSTILE: Final = '<script>alert("&\x1b[31m")</script>'
"""Model of a device whose text must be escaped in every picture."""

USER: Final = UnitUser(
    str(uuid3(NAMESPACE_DNS, 'arq')),
    'Bound',
    'small-gpu',
    str(uuid3(NAMESPACE_DNS, 'instance')),
    PROJECT,
)


def build_unit(
    name: str,
    availability: Availability,
    reason: str = '',
    user: UnitUser | None = None,
) -> TopologyUnit:
    return TopologyUnit(name, 'PCI', availability, reason, user)


def build_device(
    address: str, units: tuple[TopologyUnit, ...], model: str = 'Tesla T4'
) -> TopologyDevice:
    """Return a device with a root that is not scheduled and one child."""
    root = TopologyDeployable(
        str(uuid3(NAMESPACE_DNS, address)), f'{HOST}_{address}', None, None
    )
    child = TopologyDeployable(
        str(uuid3(NAMESPACE_DNS, f'{address} child')),
        f'{HOST}_{address}_part',
        root.uuid,
        'PGPU',
        ('CUSTOM_GPU_NVIDIA',),
        len(units),
        units=units,
    )
    return TopologyDevice(
        str(uuid3(NAMESPACE_DNS, f'{address} device')),
        address,
        'GPU',
        '10de',
        model,
        'NVIDIA',
        'enabled',
        '',
        Health.OK,
        '',
        (root, child),
    )


def build_topology(units: int = 0) -> HostTopology:
    """Return a host with two devices, with units of every availability.

    :param units: number of additional free units
    """
    free = tuple(
        build_unit(f'0000:41:01.{number}', Availability.FREE)
        for number in range(units + 1)
    )
    used = build_unit('0000:41:00.1', Availability.USED, user=USER)
    first = build_device('0000:41:00.0', (used, *free))
    second = build_device(
        '0000:81:00.0',
        (
            build_unit(
                '0000:81:00.1', Availability.RESERVED, 'A program of the host uses it.'
            ),
            build_unit('0000:81:00.2', Availability.BROKEN, 'It is missing.'),
        ),
        HOSTILE,
    )
    nodes = group_by_numa_node([(None, second), (0, first)])
    return HostTopology(HOST, 'up', nodes)


def build_shared_topology() -> HostTopology:
    """Return a host with a switch above two devices, and three other devices.

    One of the others has a root port of its own, one shares the root port only, and of
    one no bridge is known.
    """
    chains = {
        '0000:43:00.0': ('0000:40:01.0', '0000:41:00.0', '0000:42:00.0'),
        '0000:44:00.0': ('0000:40:01.0', '0000:41:00.0', '0000:42:01.0'),
        '0000:45:00.0': ('0000:40:01.0',),
        '0000:46:00.0': ('0000:40:03.0',),
        '0000:47:00.0': (),
    }
    devices = [
        replace(
            build_device(address, (build_unit(address, Availability.FREE),)),
            pci_bridges=chain,
        )
        for address, chain in chains.items()
    ]
    nodes = group_by_numa_node([(0, device) for device in devices])
    return HostTopology(HOST, 'up', nodes)
