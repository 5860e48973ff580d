# SPDX-License-Identifier: Apache-2.0
"""Offer of cards that are divided into vGPUs as the operator configures."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.host.virtual_functions import list_vf_addresses
from cyborg_lite.drivers.nvidia.capacity import (
    count_capacity,
    list_gpu_instances,
    read_driver_version,
)
from cyborg_lite.drivers.nvidia.carving import ElasticCards
from cyborg_lite.drivers.nvidia.layout import (
    CURRENT_TYPE,
    MDEV_TYPES,
    NO_TYPE,
    VgpuLayout,
    VgpuMode,
    VgpuType,
    VgpuTypeCache,
    list_mdevs,
    plan_layout,
    read_layout,
    share_instances,
)
from cyborg_lite.drivers.nvidia.models import PROFILES, Profile
from cyborg_lite.drivers.nvidia.nvswitch import TRAIT, Fabric
from cyborg_lite.drivers.nvidia.selection import (
    VgpuCard,
    VgpuSelection,
    build_deployable,
    find_type_label,
    reserve_all,
    select_types,
    summarize_offer,
    vgpu_type_label,
)
from cyborg_lite.drivers.pci.card_rules import CardRule, find_values
from cyborg_lite.drivers.pci.cards import PciCards
from cyborg_lite.drivers.prepared_handles import PreparedHandles
from cyborg_lite.model.capacity.carving import Size
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult, Health
from cyborg_lite.model.inventory.typed_attributes import DRIVER_VERSION

VENDOR_DRIVER: Final = 'nvidia'


class VgpuOffer:
    """Offers the vGPUs of the cards for which a rule names types."""

    def __init__(
        self,
        cards: PciCards,
        host: Host,
        rules: Sequence[CardRule],
        resource_class: str,
    ) -> None:
        self._cards = cards
        self._rules = rules
        self.host = host
        self.resource_class = resource_class
        self.prepared = PreparedHandles()
        self.elastic = ElasticCards(self.prepared)
        # False: Nova creates the mdevs, later than their GPU instances. Then no card is
        # elastic: an mdev could get the GPU instance of another handle.
        self.creates_mdevs = True
        self.types = VgpuTypeCache()
        self.fabric = Fabric()  # as of the last scan
        # The last device of each divided card, by address: it is reported while the
        # card cannot be read.
        self._divided: dict[str, Device] = {}

    def restore_device(self, device: Device) -> None:
        """Accept a device that an earlier agent process discovered.

        The sum of its vGPUs is the memory of a card that no longer lists all types.
        """
        product = device.std_board_info.get('product_id', '')
        for deployable in device.root.walk():
            label = deployable.attributes.get('vgpu_type', '')
            vgpu_type = VgpuType('', label, available=0)
            if vgpu_type.memory and not vgpu_type.uses_gpu_instance:
                size = deployable.total * vgpu_type.memory
                self.types.restore_memory(device.control_address, product, size)

    def remove_absent(self, present: Container[str]) -> None:
        """Remove what is known of all cards but those at the given addresses."""
        self.elastic.keep(present)
        self.types.remove_absent(present)
        divided = self._divided.items()
        self._divided = {key: item for key, item in divided if key in present}

    def classify_card(self, card: PciFunction) -> DiscoveryResult | None:
        """Return the result for a card with vGPUs; None: the card is whole."""
        layout = read_layout(card)
        prepared_types = self._list_prepared_types(layout)
        layout = self.types.complete_types(card, layout, prepared_types)
        configured = self.find_configured(card)
        if not configured and layout.is_undivided:
            self._divided.pop(card.address, None)
            return None
        if configured and layout.mode in (VgpuMode.NONE, VgpuMode.UNKNOWN):
            return self._classify_without_vgpus(card, configured)
        if self.elastic.has(card.address):
            return self._classify_elastic(card, layout, configured)
        selection = select_types(layout, configured, self.prepared)
        return self._build_divided(card, layout, selection)

    def classify_lost(self, card: PciFunction, reason: str) -> DiscoveryResult | None:
        """Return the result for a card that has been offered as vGPUs, or is to be."""
        is_divided = card.address in self._divided or self.find_configured(card)
        return self._build_unreadable(card, reason) if is_divided else None

    def describe_virtual(self, function: PciFunction) -> str:
        current = function.text(CURRENT_TYPE)
        if mdevs := list_mdevs(function):
            return f'carries {mdevs[0].type_id} {mdevs[0].uuid}'
        if current is not None and current != NO_TYPE:
            card = PciFunction(self.host, function.physfn or '')
            return f'vGPU type {self.types.find_label(card, current) or current} is set'
        return 'free' if current == NO_TYPE or function.names(MDEV_TYPES) else ''

    def find_configured(self, function: PciFunction) -> tuple[str, ...]:
        """Return the vGPU types configured for a card; empty: it stays whole."""
        uuid = self._cards.hardware_id(function)
        # Cyborg and Nova name an Ampere card by the addresses of its VFs only.
        count = function.number('sriov_totalvfs') or 0
        virtual = function.virtfns or list_vf_addresses(function, count)
        names = function.address, uuid, function.ids, *virtual
        return find_values(self._rules, *names)

    def list_fabric_traits(self, card: PciFunction) -> tuple[str, ...]:
        """Return the trait of a fabric of NVSwitches; empty without one."""
        return (TRAIT,) if self.fabric.has_card(card.device) else ()

    def _build_unreadable(self, function: PciFunction, reason: str) -> DiscoveryResult:
        """Return the last readable device of a card, with everything reserved."""
        last_device = self._divided.get(function.address)
        if last_device is None:
            return self._cards.build_withheld(function, reason, Health.FAILED)
        device = replace(
            last_device,
            root=reserve_all(last_device.root),
            health=Health.FAILED,
            health_reason=reason,
        )
        return self._cards.build_result(function, reason, device)

    def _classify_elastic(
        self, card: PciFunction, layout: VgpuLayout, configured: Sequence[str]
    ) -> DiscoveryResult:
        """Return the result for a card whose GPU instances are made on demand."""
        layout = _add_instance_types(layout, configured)
        selection = select_types(layout, configured, self.prepared)
        sizes = self.list_elastic_sizes(card)
        types = selection.types
        if not all(item.label in sizes for item in types):
            names = ', '.join(item.label for item in types if item.label not in sizes)
            reason = f'the card is elastic, but no GPU instance is known for {names}'
            selection = replace(selection, types=(), reason=reason)
        elif selection.foreign:
            # The places of their GPU instances are not known.
            selection = replace(selection, is_blocked=True)
        return self._build_divided(card, layout, selection, sizes)

    def list_elastic_sizes(self, card: PciFunction) -> dict[str, Size]:
        """Return the sizes that a card can carve, by label of the configured type.

        :returns: empty if the card cannot be elastic
        """
        if not self.creates_mdevs:
            return {}
        configured = self.find_configured(card)
        layout = _add_instance_types(read_layout(card), configured)
        types = filter(None, map(layout.find_type, configured))
        profiles = {item.name: item for item in PROFILES.get(card.device, ())}
        return {
            item.label: size
            for item in types
            if item.mig_profile in profiles
            and (size := profiles[item.mig_profile].size) is not None
        }

    def find_profile(self, handle: AllocatedHandle) -> Profile | None:
        """Return the GPU instance profile of the vGPU type of a handle, or None."""
        card = PciFunction(self.host, handle.control_address)
        text = handle.info.get('asked_type') or vgpu_type_label(handle.key)
        vgpu_type = read_layout(card).find_type(text) or VgpuType('', text, 0)
        profiles = PROFILES.get(card.device, ())
        return next((p for p in profiles if p.name == vgpu_type.mig_profile), None)

    def _build_divided(
        self,
        function: PciFunction,
        layout: VgpuLayout,
        selection: VgpuSelection,
        sizes: Mapping[str, Size] = MappingProxyType({}),  # of an elastic card
    ) -> DiscoveryResult:
        if not selection.types:
            health = Health.BUSY if selection.foreign else Health.OK
            return self._cards.build_withheld(function, selection.reason, health)
        device = function.device
        layout = replace(layout, types=share_instances(device, layout.types))
        types = share_instances(device, selection.types)
        selection = replace(selection, types=types)
        memory = self.types.find_memory(function)
        instances = list_gpu_instances(self.host, function.address)
        version = read_driver_version(self.host)
        totals = {
            item.label: sizes[item.label].count_fitting()
            if sizes
            else count_capacity(layout, item, memory, instances)
            for item in selection.types
        }
        root = build_deployable(
            VgpuCard(
                name=self._cards.root_name(function),
                address=function.address,
                product=function.device,
                layout=layout,
                selection=selection,
                totals=totals,
                memory=memory,
                more_traits=self.list_fabric_traits(function),
                # A guest with a whole card brings a driver of its own.
                driver=(DRIVER_VERSION.of(version),) if version else (),
                resource_class=self.resource_class,
                sizes=sizes,
            )
        )
        health = Health.BUSY if selection.is_blocked else Health.OK
        described = self._cards.build_device(function, root, health, selection.reason)
        self._divided[function.address] = described
        summary = summarize_offer(root, selection, layout.existing)
        return self._cards.build_result(function, summary, described)

    def _classify_without_vgpus(
        self, function: PciFunction, configured: Sequence[str]
    ) -> DiscoveryResult:
        """Return the result for a card with configured types and without vGPU files."""
        types = ' and '.join(configured)
        if function.has_guest_driver:
            # A guest may have the whole card: divide it after the release.
            root = replace(self._cards.build_whole(function), reserved=1)
            reason = f'The change to {types} is refused while it is bound to vfio'
            device = self._cards.build_device(function, root, reason=reason)
            return self._cards.build_result(function, reason, device)
        if function.driver != VENDOR_DRIVER:
            reason = f'driver {VENDOR_DRIVER} is not bound to it'
            return self._build_unreadable(function, reason)
        planned = plan_layout(function, configured)
        if planned is not None:
            selection = select_types(planned, configured, self.prepared)
            return self._build_divided(function, planned, selection)
        reason = (
            f'no vGPU type {types} is visible: its virtual functions may be disabled, '
            'or the driver may lack vGPU support'
        )
        return self._build_unreadable(function, reason)

    def _list_prepared_types(self, layout: VgpuLayout) -> Iterator[VgpuType]:
        """Yield the types of own vGPUs. A full card does not list any type."""
        for vgpu in layout.existing:
            if vgpu.uuid is None:
                label = find_type_label(vgpu, self.prepared)
                if label is not None:
                    yield VgpuType(vgpu.type_id, label, available=0)


def _add_instance_types(layout: VgpuLayout, configured: Sequence[str]) -> VgpuLayout:
    """Return the layout with the types for which an elastic card carves an instance.

    Without mdevs a card lists no type whose GPU instance does not exist.
    """
    types = [
        replace(i, available=1) if i.uses_gpu_instance else i for i in layout.types
    ]
    if layout.mode is VgpuMode.VENDOR_VFIO:
        unlisted = [text for text in configured if layout.find_type(text) is None]
        types += [VgpuType('', text, available=1) for text in unlisted]
    return replace(layout, types=tuple(types))
