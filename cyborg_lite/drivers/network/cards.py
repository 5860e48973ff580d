# SPDX-License-Identifier: Apache-2.0
"""Network cards of any vendor: virtual functions, or whole ports."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from oslo_config import cfg

from cyborg_lite.drivers.base import Section
from cyborg_lite.drivers.host import network_use
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.network import physical_networks
from cyborg_lite.drivers.pci.function_groups import GROUPS_OPTION
from cyborg_lite.drivers.pci.functions import custom_name
from cyborg_lite.drivers.pci.grouped import GroupedPciDriver
from cyborg_lite.drivers.pci.shared import SharedPciDriver
from cyborg_lite.drivers.pci.vendors import VENDOR_NAMES
from cyborg_lite.model.inventory import (
    AttachHandle,
    Deployable,
    Device,
    DiscoveryResult,
)
from cyborg_lite.model.traits import OWNER_CYBORG

_INTERFACE = 'interface'  # key in the board information


class NetworkCardDriver(GroupedPciDriver, SharedPciDriver):
    """Base of drivers for network cards; a family is data."""

    CLASSES: ClassVar[tuple[str, ...]] = ('0200', '0280')
    DEVICE_TYPE: ClassVar[str] = 'NIC'
    RESOURCE_CLASS: ClassVar[str] = 'CUSTOM_NIC'
    IS_LIMITED: ClassVar[bool] = True
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        *SharedPciDriver.OPTIONS,
        physical_networks.PHYSICAL_NETWORKS,
        physical_networks.FUNCTIONS,
        GROUPS_OPTION,
    )

    # Any: each option has its own type.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self._networks = physical_networks.parse_mappings(
            (
                *options.get('physical_device_mappings', ()),
                *options.get('cyborg_networks', ()),
            )
        )
        self._functions = physical_networks.parse_mappings(
            (
                *options.get('function_device_mappings', ()),
                *options.get('cyborg_functions', ()),
            )
        )
        # The last interface of each port, by address. A port in a guest has none.
        self._interfaces: dict[str, str] = {}
        self._routed: frozenset[str] = frozenset()

    @classmethod
    def read_legacy_config(cls, section: Section) -> Mapping[str, Any]:
        """Return the mappings in the sections of Cyborg."""
        return physical_networks.read_cyborg_mappings(section)

    def restore_device(self, device: Device) -> None:
        """Accept a device that an earlier agent process discovered."""
        super().restore_device(device)
        interface = device.std_board_info.get(_INTERFACE)
        if interface:
            self._interfaces[device.control_address] = interface

    def discover(self) -> Iterator[DiscoveryResult]:
        """Yield one result per function of a known card."""
        self._routed = network_use.list_routed(self._host)
        yield from super().discover()

    def is_own_vendor(self, function: PciFunction) -> bool:
        """Return True if this driver knows a card of the vendor."""
        return any(ids.startswith(f'{function.vendor}:') for ids in self.MODELS)

    def vendor_name(self, function: PciFunction) -> str:
        """Return the name of the vendor."""
        return VENDOR_NAMES[function.vendor]

    def find_host_user(self, function: PciFunction) -> str | None:
        """Return what of the network of the host uses a port or a virtual function."""
        user = network_use.find_network_user(function, self._routed)
        if user is None and not function.is_virtual:
            return network_use.find_active_interface(function)
        return user

    def traits(self, function: PciFunction) -> tuple[str, ...]:
        """Return the traits of a port that is offered as a whole."""
        return self._list_traits('PF', function)

    def shared_traits(self, function: PciFunction) -> tuple[str, ...]:
        """Return the traits of the virtual functions of a port."""
        return self._list_traits('VF', function)

    def build_handle(self, card: PciFunction, function: PciFunction) -> AttachHandle:
        """Return the attach handle with the physical network that Nova reads."""
        handle = super().build_handle(card, function)
        networks = self._find_names(self._networks, card)
        if not networks:
            return handle
        return replace(handle, info={**handle.info, 'physical_network': networks[0]})

    def build_device(self, function: PciFunction, root: Deployable) -> Device:
        """Return the device of a port with the name of its network interface."""
        device = super().build_device(function, root)
        interface = self._find_interface(function)
        board = {_INTERFACE: interface} if interface else {}
        return replace(device, std_board_info={**device.std_board_info, **board})

    def _list_traits(self, kind: str, card: PciFunction) -> tuple[str, ...]:
        networks = self._find_names(self._networks, card)[:1]
        names = (kind, *networks, *self._find_names(self._functions, card))
        return OWNER_CYBORG, *map(custom_name, names)

    def _find_names(
        self, mappings: Mapping[str, Sequence[str]], card: PciFunction
    ) -> Sequence[str]:
        """Return the names that the operator assigned to a card."""
        by_address = mappings.get(card.address, ())
        return by_address or mappings.get(self._find_interface(card) or '', ())

    def _find_interface(self, card: PciFunction) -> str | None:
        for name in network_use.list_interfaces(card)[:1]:
            self._interfaces[card.address] = name
        return self._interfaces.get(card.address)
