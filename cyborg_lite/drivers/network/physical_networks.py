# SPDX-License-Identifier: Apache-2.0
"""Names that the operator assigns to network cards, by their network interface.

The format is that of OpenStack Cyborg: ``physnet1:ens1f0|ens1f1``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from oslo_config import cfg, types

from cyborg_lite.drivers.base import Section
from cyborg_lite.drivers.host.sysfs import pci_address

_PAIR: Final = types.String(regex=r'^[^:\s]+:[^|\s]+(\|[^|\s]+)*$')

PHYSICAL_NETWORKS: Final = cfg.ListOpt(
    'physical_device_mappings',
    default=[],
    item_type=_PAIR,
    help="""
Physical networks of cards, as `network:interface|interface` entries. `interface`
is the network interface or the PCI address of a physical function. Neutron
ports with a device profile need the physical network of their segment. Use the
PCI address for a card that is given to guests as a whole, because such a card
has no network interface then. Example: physnet1:ens1f0|ens1f1,
physnet2:0000:5e:00.0.
""",
)
FUNCTIONS: Final = cfg.ListOpt(
    'function_device_mappings',
    default=[],
    item_type=_PAIR,
    help="""
Further traits of cards, as `name:interface|interface` entries. The trait is the
name in capitals with the prefix CUSTOM_. Example: ovs-offload:ens1f0 adds the
trait CUSTOM_OVS_OFFLOAD.
""",
)

_TYPES: Final = cfg.ListOpt('enabled_nic_types', default=[], help='Cyborg option.')


def parse_mappings(texts: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Return the names by interface or PCI address, in the order of the texts."""
    names: dict[str, list[str]] = {}
    for text in texts:
        name, _, interfaces = text.partition(':')
        for interface in interfaces.split('|'):
            key = pci_address(interface) or interface
            names.setdefault(key, []).append(name)
    return names


# Any: each option has its own type.
def read_cyborg_mappings(section: Section) -> Mapping[str, Any]:
    """Return the mappings in the sections that ``[nic_devices]`` of Cyborg names."""
    values: dict[str, list[str]] = {'cyborg_networks': [], 'cyborg_functions': []}
    for name in section('nic_devices', [_TYPES])[_TYPES.dest]:
        mappings = section(name, [PHYSICAL_NETWORKS, FUNCTIONS])
        values['cyborg_networks'] += mappings[PHYSICAL_NETWORKS.dest]
        values['cyborg_functions'] += mappings[FUNCTIONS.dest]
    return values
