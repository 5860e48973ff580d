# SPDX-License-Identifier: Apache-2.0
"""NVIDIA GPUs: whole cards by passthrough, or divided into vGPUs as configured."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.base import Options, Section
from cyborg_lite.drivers.host.kernel import CHANGE_TIMEOUT
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.nvidia import nvswitch
from cyborg_lite.drivers.nvidia.capacity import read_driver_information
from cyborg_lite.drivers.nvidia.fabric_partitions import FABRIC_PARTITIONS, FabricGroups
from cyborg_lite.drivers.nvidia.layout import (
    CURRENT_TYPE,
    MDEV_TYPES,
    NO_TYPE,
    list_mdevs,
    read_layout,
)
from cyborg_lite.drivers.nvidia.mig import MigModes
from cyborg_lite.drivers.nvidia.models import MEMORY, MODELS, find_architecture
from cyborg_lite.drivers.nvidia.nvml import Nvml, Readings
from cyborg_lite.drivers.nvidia.offer import VENDOR_DRIVER, VgpuOffer
from cyborg_lite.drivers.nvidia.vgpus import VgpuHandles
from cyborg_lite.drivers.pci import card_rules
from cyborg_lite.drivers.pci.card_modes import MODES_OPTION, ModesPciDriver
from cyborg_lite.drivers.pci.driver import GroupedPciDriver
from cyborg_lite.drivers.pci.function_groups import GROUPS_OPTION
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.host_report import (
    Deployable,
    Device,
    DiscoveryResult,
    Health,
)
from cyborg_lite.model.inventory.typed_attributes import (
    AttributeDeclaration,
    TypedAttribute,
)

_GIB: Final = 1024  # MiB
_CREATES_MDEVS: Final = cfg.BoolOpt(
    'creates_mdevs',
    default=True,
    help="""
Create the mdevs of instances before Nova attaches them, and again after a
reboot of the host. If false, Nova 34.0.0 or later creates them through libvirt
with a persistent definition; the agent creates virtual functions only, and
removes mdevs and definitions at the release. Set it to false if libvirt must
manage all mdevs of the host.
""",
)


class NvidiaGpu(ModesPciDriver, GroupedPciDriver):
    """Driver for NVIDIA GPUs with and without vGPUs."""

    NAME: ClassVar[str] = 'nvidia_gpu_driver'
    VENDOR: ClassVar[str] = '10de'
    VENDOR_NAME: ClassVar[str] = 'NVIDIA'
    CLASSES: ClassVar[tuple[str, ...]] = ('0300', '0302', '0380')
    DEVICE_TYPE: ClassVar[str] = 'GPU'
    RESOURCE_CLASS: ClassVar[str] = 'PGPU'
    MODELS: ClassVar[Mapping[str, str]] = MODELS
    HOST_DRIVERS: ClassVar[tuple[str, ...]] = (VENDOR_DRIVER, 'nouveau')
    ATTRIBUTES: ClassVar[Sequence[AttributeDeclaration]] = (
        *GroupedPciDriver.ATTRIBUTES,
        typed_attributes.ARCHITECTURE,
        typed_attributes.DRIVER_VERSION,
        typed_attributes.MEMORY,
        typed_attributes.MIG_PROFILE,
        typed_attributes.SAME_FABRIC,
        typed_attributes.VGPU_TYPE,
    )
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        *GroupedPciDriver.OPTIONS,
        card_rules.VGPU_TYPES,
        CHANGE_TIMEOUT,
        _CREATES_MDEVS,
        card_rules.VGPU_CLASS,
        MODES_OPTION,
        GROUPS_OPTION,
        FABRIC_PARTITIONS,
    )

    def __init__(self, host: Host, options: Options) -> None:
        super().__init__(host, options)
        texts = (*options.get('vgpu_types', ()), *options.get('cyborg_rules', ()))
        rules = card_rules.parse_rules(texts)
        vgpu_class = options.get('vgpu_resource_class', card_rules.VGPU)
        self.vgpu_offer = VgpuOffer(self, host, rules, vgpu_class)
        self._nvml = Nvml()
        self._vgpus = VgpuHandles(
            self.vgpu_offer,
            self._writer,
            self._nvml,
            creates_mdevs=options.get('creates_mdevs', _CREATES_MDEVS.default),
        )
        self.card_modes = MigModes(
            self.vgpu_offer, self._writer, self._nvml, self.declared_modes
        )
        partitions = options.get('fabric_partitions', ())
        self._fabric_groups = FabricGroups(self._writer, partitions)

    @classmethod
    def read_legacy_config(cls, section: Section) -> Options:
        return {'cyborg_rules': card_rules.read_cyborg_rules(section)}

    def restore_handles(self, handles: Iterable[AllocatedHandle]) -> None:
        self.vgpu_offer.prepared.add(handles)

    def restore_device(self, device: Device) -> None:
        super().restore_device(device)
        self.vgpu_offer.restore_device(device)

    def prepare(self, handle: AllocatedHandle) -> None:
        """Create the vGPU of a handle; a whole card needs nothing."""
        if not self.find_group(handle):
            self._vgpus.create(handle)

    def release(self, handle: AllocatedHandle) -> None:
        if not self.find_group(handle):
            self._vgpus.remove(handle)

    def is_prepared(self, handle: AllocatedHandle) -> bool:
        return bool(self.find_group(handle)) or self._vgpus.exists(handle)

    def list_group_texts(self) -> Sequence[str]:
        partitions = self._options.get('fabric_partitions', ())
        cards = (text.partition('=')[2] for text in partitions)
        return (*super().list_group_texts(), *cards)

    def activate(self, members: Sequence[AllocatedHandle]) -> None:
        self._fabric_groups.activate(self.groups.check_members(members))

    def deactivate(self, members: Sequence[AllocatedHandle]) -> None:
        self._fabric_groups.deactivate(self.groups.find(members[0].control_address))

    def discover(self) -> Iterator[DiscoveryResult]:
        present = {function.address for function in self._host.pci_functions()}
        self.vgpu_offer.remove_absent(present)
        self.vgpu_offer.fabric = nvswitch.read_fabric(self._host, self._scan)
        yield from super().discover()

    def classify_card(self, function: PciFunction) -> DiscoveryResult:
        divided = self.vgpu_offer.classify_card(function)
        return divided or super().classify_card(function)

    def classify_companion(self, function: PciFunction) -> DiscoveryResult | None:
        if nvswitch.is_switch(function):
            return self.build_result(function, nvswitch.SWITCH_REASON)
        return super().classify_companion(function)

    def find_whole_obstacle(self, function: PciFunction) -> str | None:
        if self.vgpu_offer.find_configured(function):
            return 'vgpu_types has a rule for it'
        if read_layout(function).existing:
            return 'it has vGPUs'
        return super().find_whole_obstacle(function)

    def traits(self, function: PciFunction) -> tuple[str, ...]:
        fabric = self.vgpu_offer.list_fabric_traits(function)
        return (*super().traits(function), *fabric)

    def list_attributes(self, function: PciFunction) -> Iterator[TypedAttribute]:
        yield from super().list_attributes(function)
        architecture = find_architecture(function.device)
        if architecture is not None:
            yield typed_attributes.ARCHITECTURE.of(architecture)
        if self._fabric_groups.has_group(self.groups.find(function.address)):
            yield typed_attributes.SAME_FABRIC.of(True)

    def build_whole(self, function: PciFunction) -> Deployable:
        root, fabric = super().build_whole(function), self.vgpu_offer.fabric
        if function.device in MEMORY:
            memory = typed_attributes.MEMORY.of(MEMORY[function.device] * _GIB)
            root = replace(root, typed_attributes=(memory,))
        if not fabric.has_card(function.device):
            return root
        number = {nvswitch.ATTRIBUTE: str(fabric.switches)}
        return replace(root, attributes={**root.attributes, **number})

    def build_lost(self, function: PciFunction, reason: str) -> DiscoveryResult:
        if self.vgpu_offer.is_divided(function):
            return self.vgpu_offer.build_unreadable(function, reason)
        return super().build_lost(function, reason)

    def describe_offer(self, function: PciFunction) -> str:
        text, fabric = super().describe_offer(function), self.vgpu_offer.fabric
        return f'{text}, {fabric}' if fabric.has_card(function.device) else text

    def describe_virtual(self, function: PciFunction) -> str:
        text = super().describe_virtual(function)
        current = function.text(CURRENT_TYPE)
        if mdevs := list_mdevs(function):
            return f'{text}: carries {mdevs[0].type_id} {mdevs[0].uuid}'
        if current is not None and current != NO_TYPE:
            card = PciFunction(self._host, function.physfn or '')
            label = self.vgpu_offer.types.find_label(card, current)
            return f'{text}: vGPU type {label or current} is set'
        can_carry = current == NO_TYPE or function.names(MDEV_TYPES)
        return f'{text}: free' if can_carry else text

    def read_serial(self, function: PciFunction) -> str | None:
        """Return the GPU uuid, which the vendor driver shows while bound."""
        uuid = read_driver_information(self._host, function.address, 'GPU UUID')
        # The driver shows question marks until it has initialized the card.
        return None if uuid is None or '?' in uuid else uuid

    def read_usage(self, device: Device) -> Usage:
        """Return the telemetry of a card; load and memory come from NVML."""
        function = PciFunction(self._host, device.control_address)
        usage = super().read_usage(device)
        readings: Readings = {}
        if function.driver == VENDOR_DRIVER and usage.health is not Health.FAILED:
            readings = self._nvml.readings(device.control_address)
        total = sum(
            deployable.total
            for deployable in device.root.walk()
            if deployable.attributes.get('vgpu_type')
        )
        return replace(
            usage,
            busy_percent=readings.get('busy_percent'),
            memory_used=_to_int(readings.get('memory_used')),
            memory_total=_to_int(readings.get('memory_total')),
            temperature=readings.get('temperature', usage.temperature),
            power=readings.get('power', usage.power),
            units_used=len(read_layout(function).existing) if total else None,
            units_total=total or None,
        )


def _to_int(value: float | None) -> int | None:
    return None if value is None else int(value)
