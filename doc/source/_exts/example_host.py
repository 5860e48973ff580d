# SPDX-License-Identifier: Apache-2.0
"""The host of the directive ``host-topology``."""

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

_HOST: Final = 'compute-1'
_ROOT_PORT: Final = '0000:3d:01.0'
_SWITCH: Final = '0000:3e:00.0'


def build_example() -> HostTopology:
    """Return a host with vGPUs, a whole GPU, a broken FPGA and virtual functions."""
    vgpus = tuple(
        _unit(f'0000:41:00.0/{number}', 'small-gpu' if number < 2 else '')
        for number in range(4)
    )
    functions = tuple(
        _unit(f'0000:e8:00.{number}', 'compression' if number == 1 else '')
        for number in range(1, 5)
    )
    failure = 'The device is failed: a fatal PCIe error'
    region = TopologyUnit('0000:81:00.1', 'PCI', Availability.BROKEN, failure)
    a100 = _device('0000:41:00.0', 'GPU', 'NVIDIA A100', 'VGPU', vgpus)
    whole = (_unit('0000:42:00.0', 'whole-gpu'),)
    t4 = _device('0000:42:00.0', 'GPU', 'Tesla T4', 'PGPU', whole)
    qat = _device('0000:e8:00.0', 'QAT', 'QuickAssist 4xxx', 'CUSTOM_QAT', functions)
    fpga = _device(
        '0000:81:00.0', 'FPGA', 'FPGA PAC D5005', 'FPGA', (region,), Health.FAILED
    )
    # Both GPUs are behind one switch.
    a100 = replace(a100, pci_bridges=(_ROOT_PORT, _SWITCH, '0000:3f:00.0'))
    t4 = replace(t4, pci_bridges=(_ROOT_PORT, _SWITCH, '0000:3f:01.0'))
    qat = replace(qat, pci_bridges=('0000:e7:01.0',))
    fpga = replace(fpga, pci_bridges=('0000:80:02.0',))
    placed = [(0, a100), (0, t4), (1, fpga), (1, qat)]
    return HostTopology(_HOST, 'up', group_by_numa_node(placed))


def _unit(name: str, profile: str) -> TopologyUnit:
    """Return a unit that an ARQ of a profile uses; without a profile it is free."""
    if not profile:
        return TopologyUnit(name, 'PCI', Availability.FREE)
    arq, instance = (str(uuid3(NAMESPACE_DNS, f'{name} {noun}')) for noun in 'ai')
    user = UnitUser(arq, 'Bound', profile, instance, uuid3(NAMESPACE_DNS, 'p').hex)
    return TopologyUnit(name, 'PCI', Availability.USED, user=user)


def _device(  # noqa: PLR0913  # the columns of an example
    address: str,
    kind: str,
    model: str,
    resource_class: str,
    units: tuple[TopologyUnit, ...],
    health: Health = Health.OK,
) -> TopologyDevice:
    name = f'{_HOST}_{address}'
    root = TopologyDeployable(
        str(uuid3(NAMESPACE_DNS, name)), name, None, resource_class, units=units
    )
    reason = '' if health is Health.OK else 'a fatal PCIe error'
    texts = (kind, '', model, '', 'enabled', '')
    return TopologyDevice(root.uuid, address, *texts, health, reason, (root,))
