# SPDX-License-Identifier: Apache-2.0
"""Network cards of any vendor: virtual functions, or whole ports."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from oslo_config import cfg, types

from cyborg_lite.drivers.base import Options, Section
from cyborg_lite.drivers.host import network_use
from cyborg_lite.drivers.host.sysfs import Host, PciFunction, pci_address
from cyborg_lite.drivers.pci.driver import GroupedPciDriver
from cyborg_lite.drivers.pci.function_groups import GROUPS_OPTION
from cyborg_lite.drivers.pci.functions import custom_name
from cyborg_lite.drivers.pci.names import STAYING
from cyborg_lite.drivers.pci.shared import SharedPciDriver
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Device,
    DiscoveryResult,
)
from cyborg_lite.model.traits import OWNER_CYBORG

# As in OpenStack Cyborg: physnet1:ens1f0|ens1f1.
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

_INFINIBAND: Final = '0207'  # class; the firmware sets the mode of a ConnectX
INTERFACE: Final = 'interface'  # key in the board information

_TYPES: Final = cfg.ListOpt('enabled_nic_types', default=[], help='Cyborg option.')


class PortNames:
    """The names that the options of a driver assign to ports."""

    def __init__(self, options: Options) -> None:
        networks, functions = PHYSICAL_NETWORKS.dest, FUNCTIONS.dest
        self._networks = parse_mappings(
            [*options.get(networks, ()), *options.get('cyborg_networks', ())]
        )
        self._functions = parse_mappings(
            [*options.get(functions, ()), *options.get('cyborg_functions', ())]
        )
        # The last interface of each port, by address. A port in a guest has none.
        self._interfaces: dict[str, str] = {}

    def restore_device(self, device: Device) -> None:
        """Accept a device that an earlier agent process discovered."""
        interface = device.std_board_info.get(INTERFACE)
        if interface:
            self._interfaces[device.control_address] = interface

    def find_interface(self, card: PciFunction) -> str | None:
        """Return the last network interface of a port, or None without one."""
        for name in network_use.list_interfaces(card)[:1]:
            self._interfaces[card.address] = name
        return self._interfaces.get(card.address)

    def list_networks(self, card: PciFunction) -> Sequence[str]:
        """Return the physical network of a port; empty without one."""
        return self._find(self._networks, card)[:1]

    def list_functions(self, card: PciFunction) -> Sequence[str]:
        """Return the names of functions of a port."""
        return self._find(self._functions, card)

    def _find(
        self, mappings: Mapping[str, Sequence[str]], card: PciFunction
    ) -> Sequence[str]:
        by_address = mappings.get(card.address, ())
        return by_address or mappings.get(self.find_interface(card) or '', ())


def parse_mappings(texts: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Return the names by interface or PCI address, in the order of the texts."""
    names: dict[str, list[str]] = {}
    for text in texts:
        name, _, interfaces = text.partition(':')
        for interface in interfaces.split('|'):
            key = pci_address(interface) or interface
            names.setdefault(key, []).append(name)
    return names


def read_cyborg_mappings(section: Section) -> Options:
    """Return the mappings in the sections that ``[nic_devices]`` of Cyborg names."""
    values: dict[str, list[str]] = {'cyborg_networks': [], 'cyborg_functions': []}
    for name in section('nic_devices', [_TYPES])[_TYPES.dest]:
        mappings = section(name, [PHYSICAL_NETWORKS, FUNCTIONS])
        values['cyborg_networks'] += mappings[PHYSICAL_NETWORKS.dest]
        values['cyborg_functions'] += mappings[FUNCTIONS.dest]
    return values


class SriovNic(GroupedPciDriver, SharedPciDriver):
    """Driver for network cards that are shared as virtual functions."""

    NAME: ClassVar[str] = 'sriov_nic_driver'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        *SharedPciDriver.OPTIONS,
        PHYSICAL_NETWORKS,
        FUNCTIONS,
        GROUPS_OPTION,
    )

    def __init__(self, host: Host, options: Options) -> None:
        super().__init__(host, options)
        self._names = PortNames(options)
        self._routed: frozenset[str] = frozenset()

    @classmethod
    def read_legacy_config(cls, section: Section) -> Options:
        return read_cyborg_mappings(section)

    def restore_device(self, device: Device) -> None:
        super().restore_device(device)
        self._names.restore_device(device)

    def discover(self) -> Iterator[DiscoveryResult]:
        self._routed = network_use.list_routed(self._host)
        yield from super().discover()

    def is_own_vendor(self, function: PciFunction) -> bool:
        return any(ids.startswith(f'{function.vendor}:') for ids in self.MODELS)

    def classify_companion(self, function: PciFunction) -> DiscoveryResult | None:
        """Return the result for a function that stays with the host, or None."""
        kind = STAYING.get(function.ids)
        reason = f'{kind}: it stays with the host'
        return self.build_result(function, reason) if kind else None

    def find_host_user(self, function: PciFunction) -> str | None:
        return network_use.find_network_user(function, self._routed)

    def traits(self, function: PciFunction) -> tuple[str, ...]:
        return self._list_traits('PF', function)

    def shared_traits(self, function: PciFunction) -> tuple[str, ...]:
        return self._list_traits('VF', function)

    def build_handle(self, card: PciFunction, function: PciFunction) -> AttachHandle:
        handle = super().build_handle(card, function)
        networks = self._names.list_networks(card)
        own = {'physical_network': networks[0]} if networks else {}
        return replace(handle, info={**handle.info, **own})

    def board_info(self, function: PciFunction) -> dict[str, str]:
        interface = self._names.find_interface(function)
        own = {INTERFACE: interface} if interface else {}
        return super().board_info(function) | own

    def _list_traits(self, kind: str, card: PciFunction) -> tuple[str, ...]:
        networks = self._names.list_networks(card)
        mode = ('NIC_INFINIBAND',) if card.pci_class.startswith(_INFINIBAND) else ()
        names = (kind, *mode, *networks, *self._names.list_functions(card))
        return OWNER_CYBORG, *map(custom_name, names)
