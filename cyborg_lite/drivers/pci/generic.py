# SPDX-License-Identifier: Apache-2.0
"""PCI functions that the operator allows, whole or as virtual functions."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.base import Options, Section
from cyborg_lite.drivers.host import disk_use, mdev, network_use
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.pci.allowed_functions import AllowedFunctions, parse_entries
from cyborg_lite.drivers.pci.driver import GroupedPciDriver
from cyborg_lite.drivers.pci.function_groups import GROUPS_OPTION
from cyborg_lite.drivers.pci.names import STAYING
from cyborg_lite.drivers.pci.shared import SharedPciDriver
from cyborg_lite.model.inventory.host_report import AttachHandle, DiscoveryResult
from cyborg_lite.model.ownership.nova_config import NovaPciFunction

_BRIDGES: Final = '06'  # class; a bridge carries the traffic of other functions

_DEVICE_SPEC: Final = cfg.MultiStrOpt(
    'device_spec',
    default=[],
    help="""
PCI functions that guests may get, as one JSON object per line; the first entry
that matches a function applies. The keys vendor_id, product_id, address and
devname are those of [pci] device_spec of Nova; class is the first digits of
the class code. A physical function that has virtual functions is shared by
them. Further keys: resource_class, traits, device_type, managed,
physical_network, and cleaning, which replaces the option cleaning. Example:
{"vendor_id": "1d55", "product_id": "1001", "resource_class": "CUSTOM_DSP"}
""",
)
_WHITELIST: Final = cfg.MultiStrOpt(
    'passthrough_whitelist', default=[], help='Entries as configured for Cyborg.'
)


class GenericPci(GroupedPciDriver, SharedPciDriver):
    """Driver for the PCI functions that the operator allows."""

    NAME: ClassVar[str] = 'pci_driver'
    TRAIT_PREFIX: ClassVar[str] = 'PCI'
    # An entry selects functions of any class.
    CLASSES: ClassVar[tuple[str, ...]] = ('',)
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        *SharedPciDriver.OPTIONS,
        _DEVICE_SPEC,
        GROUPS_OPTION,
    )

    def __init__(self, host: Host, options: Options) -> None:
        super().__init__(host, options)
        texts = (*options.get('device_spec', ()), *options.get('cyborg_entries', ()))
        self._entries = parse_entries(texts)
        self._routed: frozenset[str] = frozenset()
        # The last interfaces of each function, by address: devname selects a function
        # that a guest has, too.
        self._interfaces: dict[str, frozenset[str]] = {}

    @classmethod
    def read_legacy_config(cls, section: Section) -> Options:
        return {'cyborg_entries': section('pci', [_WHITELIST])[_WHITELIST.dest]}

    def discover(self) -> Iterator[DiscoveryResult]:
        self._routed = network_use.list_routed(self._host)
        yield from super().discover()

    def is_own_vendor(self, function: PciFunction) -> bool:
        return self._find_entry(function) is not None

    def classify(self, function: PciFunction) -> DiscoveryResult | None:
        physical = PciFunction(self._host, function.physfn or '')
        if function.physfn is None or self.is_own_vendor(physical):
            return super().classify(function)
        # An entry selects virtual functions, but not their card.
        return self.classify_card(function) if self.is_own_vendor(function) else None

    def find_host_user(self, function: PciFunction) -> str | None:
        if function.pci_class.startswith(_BRIDGES):
            return 'a bridge, which other functions need'
        return (
            STAYING.get(function.ids)
            or network_use.find_network_user(function, self._routed)
            or mdev.find_user(function)
            or disk_use.find_storage_user(function)
        )

    def traits(self, function: PciFunction) -> tuple[str, ...]:
        own = super().traits(function)
        return tuple(dict.fromkeys((*own, *self._entry(function).traits)))

    def resource_class(self, function: PciFunction) -> str:
        return self._entry(function).resource_class

    def device_type(self, function: PciFunction) -> str:
        return self._entry(function).device_type

    def build_handle(self, card: PciFunction, function: PciFunction) -> AttachHandle:
        entry = self._entry(card)
        handle = super().build_handle(card, function)
        network = entry.physical_network
        extra = {'physical_network': network} if network else {}
        info = {**handle.info, **extra}
        policy = entry.cleaning or handle.cleaning
        return replace(handle, info=info, managed=entry.is_managed, cleaning=policy)

    def _entry(self, function: PciFunction) -> AllowedFunctions:
        entry = self._find_entry(function)
        if entry is None:
            raise LookupError(function.address)  # the caller has checked it
        return entry

    def _find_entry(self, function: PciFunction) -> AllowedFunctions | None:
        if not function.vendor or not function.device:
            return None
        properties = NovaPciFunction(
            address=function.address,
            vendor=function.vendor,
            product=function.device,
            parent=function.physfn,
            interfaces=self._list_interfaces(function),
        )
        pci_class = function.pci_class
        return next(
            (item for item in self._entries if item.covers(properties, pci_class)), None
        )

    def _list_interfaces(self, function: PciFunction) -> frozenset[str]:
        """Return the interfaces of a function and of its physical function."""
        addresses = filter(None, (function.address, function.physfn))
        for address in addresses:
            names = network_use.list_interfaces(PciFunction(self._host, address))
            if names:
                self._interfaces[address] = frozenset(names)
        return frozenset().union(
            self._interfaces.get(function.address, frozenset()),
            self._interfaces.get(function.physfn or '', frozenset()),
        )
