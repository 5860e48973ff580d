# SPDX-License-Identifier: Apache-2.0
"""NVIDIA GPUs: whole cards by passthrough, or divided into vGPUs as configured."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.base import Options, Section
from cyborg_lite.drivers.host.kernel import CHANGE_TIMEOUT
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.host.telemetry import Readings
from cyborg_lite.drivers.nvidia import nvswitch
from cyborg_lite.drivers.nvidia.capacity import read_driver_information
from cyborg_lite.drivers.nvidia.fabric_partitions import FABRIC_PARTITIONS, FabricGroups
from cyborg_lite.drivers.nvidia.layout import (
    read_layout,
)
from cyborg_lite.drivers.nvidia.mig import MigModes
from cyborg_lite.drivers.nvidia.models import MEMORY, MODELS, find_architecture
from cyborg_lite.drivers.nvidia.nvml import SIGNALS, Nvml
from cyborg_lite.drivers.nvidia.offer import VENDOR_DRIVER, VgpuOffer
from cyborg_lite.drivers.nvidia.vgpus import VgpuHandles
from cyborg_lite.drivers.pci import card_rules
from cyborg_lite.drivers.pci.card_modes import MODES_OPTION, ModesPciDriver
from cyborg_lite.drivers.pci.driver import GroupedPciDriver, PreparingPciDriver
from cyborg_lite.drivers.pci.function_cleaning import CardFacts
from cyborg_lite.drivers.pci.function_groups import GROUPS_OPTION
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
# Counters of NVML that a reset does not clear.
_LASTING_ERRORS: Final = (
    'ecc_aggregate_uncorrected',
    'rows_remapped_uncorrected',
    'row_remap_pending',
    'row_remap_failed',
    'retired_pages',
)
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


class NvidiaGpu(ModesPciDriver, GroupedPciDriver, PreparingPciDriver):
    """Driver for NVIDIA GPUs with and without vGPUs."""

    NAME: ClassVar[str] = 'nvidia_gpu_driver'
    SIGNALS: ClassVar[Sequence[str]] = (*GroupedPciDriver.SIGNALS, *SIGNALS, 'xid_*')
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
        writer, groups = self._writer, options.get('groups', ())
        partitions = options.get('fabric_partitions', ())
        self.groups = self._fabric = FabricGroups(host, writer, groups, partitions)
        self.offer = self._vgpus = VgpuOffer(self, host, rules, vgpu_class)
        self._nvml = Nvml()
        self.handles = VgpuHandles(
            self._vgpus,
            self.groups,
            writer,
            self._nvml,
            creates_mdevs=options.get('creates_mdevs', _CREATES_MDEVS.default),
        )
        self._vgpus.creates_mdevs = options.get('creates_mdevs', True)
        self.card_modes = MigModes(self._vgpus, writer, self._nvml, self.declared_modes)

    @classmethod
    def read_legacy_config(cls, section: Section) -> Options:
        return {'cyborg_rules': card_rules.read_cyborg_rules(section)}

    def restore_device(self, device: Device) -> None:
        super().restore_device(device)
        self._vgpus.restore_device(device)

    def discover(self) -> Iterator[DiscoveryResult]:
        present = {function.address for function in self._host.pci_functions()}
        self._vgpus.remove_absent(present)
        self._vgpus.fabric = nvswitch.read_fabric(self._host, self._scan)
        yield from super().discover()

    def classify_companion(self, function: PciFunction) -> DiscoveryResult | None:
        if nvswitch.is_switch(function):
            return self.build_result(function, nvswitch.SWITCH_REASON)
        return super().classify_companion(function)

    def find_whole_obstacle(self, function: PciFunction) -> str | None:
        if self._vgpus.find_configured(function):
            return 'vgpu_types has a rule for it'
        if read_layout(function).existing:
            return 'it has vGPUs'
        return super().find_whole_obstacle(function)

    def traits(self, function: PciFunction) -> tuple[str, ...]:
        fabric = self._vgpus.list_fabric_traits(function)
        return (*super().traits(function), *fabric)

    def list_attributes(self, function: PciFunction) -> Iterator[TypedAttribute]:
        yield from super().list_attributes(function)
        architecture = find_architecture(function.device)
        if architecture is not None:
            yield typed_attributes.ARCHITECTURE.of(architecture)
        if self._fabric.is_partition(function):
            yield typed_attributes.SAME_FABRIC.of(True)

    def build_whole(self, function: PciFunction) -> Deployable:
        root, fabric = super().build_whole(function), self._vgpus.fabric
        if function.device in MEMORY:
            memory = typed_attributes.MEMORY.of(MEMORY[function.device] * _GIB)
            root = replace(root, typed_attributes=(memory,))
        if not fabric.has_card(function.device):
            return root
        number = {nvswitch.ATTRIBUTE: str(fabric.switches)}
        return replace(root, attributes={**root.attributes, **number})

    def describe_offer(self, function: PciFunction) -> str:
        text, fabric = super().describe_offer(function), self._vgpus.fabric
        return f'{text}, {fabric}' if fabric.has_card(function.device) else text

    def read_serial(self, function: PciFunction) -> str | None:
        """Return the GPU uuid, which the vendor driver shows while bound."""
        uuid = read_driver_information(self._host, function.address, 'GPU UUID')
        # The driver shows question marks until it has initialized the card.
        return None if uuid is None or '?' in uuid else uuid

    def read_reset_facts(self, function: PciFunction) -> CardFacts:
        if function.driver != VENDOR_DRIVER:
            return {}
        readings = self._nvml.read_now(function.address)  # initializes the card
        text = read_driver_information(self._host, function.address, 'Video BIOS')
        facts: dict[str, str | int] = {
            name: int(readings[name]) for name in _LASTING_ERRORS if name in readings
        }
        if text is not None and '?' not in text:
            facts['VBIOS'] = text
        return {**super().read_reset_facts(function), **facts}

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
        counters = {n: int(readings[n]) for n in SIGNALS if n in readings}
        return replace(
            usage,
            busy_percent=readings.get('busy_percent'),
            memory_used=_to_int(readings.get('memory_used')),
            memory_total=_to_int(readings.get('memory_total')),
            temperature=readings.get('temperature', usage.temperature),
            power=readings.get('power', usage.power),
            units_used=len(read_layout(function).existing) if total else None,
            units_total=total or None,
            counters={**usage.counters, **counters},
        )


def _to_int(value: float | None) -> int | None:
    return None if value is None else int(value)
