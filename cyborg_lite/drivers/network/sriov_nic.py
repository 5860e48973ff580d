# SPDX-License-Identifier: Apache-2.0
"""Network cards of any vendor: virtual functions, or whole ports."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from oslo_config import cfg

from cyborg_lite.drivers.base import Options, Section
from cyborg_lite.drivers.host import network_use
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.network import physical_networks
from cyborg_lite.drivers.pci.driver import GroupedPciDriver
from cyborg_lite.drivers.pci.function_groups import GROUPS_OPTION
from cyborg_lite.drivers.pci.functions import custom_name
from cyborg_lite.drivers.pci.shared import SharedPciDriver
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Device,
    DiscoveryResult,
)
from cyborg_lite.model.traits import OWNER_CYBORG


class SriovNic(GroupedPciDriver, SharedPciDriver):
    """Driver for network cards that are shared as virtual functions."""

    NAME: ClassVar[str] = 'sriov_nic_driver'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        *SharedPciDriver.OPTIONS,
        physical_networks.PHYSICAL_NETWORKS,
        physical_networks.FUNCTIONS,
        GROUPS_OPTION,
    )

    def __init__(self, host: Host, options: Options) -> None:
        super().__init__(host, options)
        self._names = physical_networks.PortNames(options)
        self._routed: frozenset[str] = frozenset()

    @classmethod
    def read_legacy_config(cls, section: Section) -> Options:
        return physical_networks.read_cyborg_mappings(section)

    def restore_device(self, device: Device) -> None:
        super().restore_device(device)
        self._names.restore_device(device)

    def discover(self) -> Iterator[DiscoveryResult]:
        self._routed = network_use.list_routed(self._host)
        yield from super().discover()

    def is_own_vendor(self, function: PciFunction) -> bool:
        return any(ids.startswith(f'{function.vendor}:') for ids in self.MODELS)

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
        own = {physical_networks.INTERFACE: interface} if interface else {}
        return super().board_info(function) | own

    def _list_traits(self, kind: str, card: PciFunction) -> tuple[str, ...]:
        networks = self._names.list_networks(card)
        names = (kind, *networks, *self._names.list_functions(card))
        return OWNER_CYBORG, *map(custom_name, names)
