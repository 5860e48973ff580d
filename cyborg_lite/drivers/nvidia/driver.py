# SPDX-License-Identifier: Apache-2.0
"""NVIDIA GPUs: whole cards by passthrough, or divided into vGPUs as configured."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.base import Section
from cyborg_lite.drivers.host.kernel import CHANGE_TIMEOUT, Writer
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.host.virtual_functions import list_vf_addresses
from cyborg_lite.drivers.nvidia.capacity import (
    count_capacity,
    find_card_memory,
    list_gpu_instances,
    read_driver_information,
    read_driver_version,
)
from cyborg_lite.drivers.nvidia.fabric_partitions import (
    FABRIC_PARTITIONS,
    FabricPartitions,
)
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
)
from cyborg_lite.drivers.nvidia.mig import (
    PROFILES,
    GpuInstances,
    Profile,
    count_profile,
    format_layout,
    list_layouts,
    parse_layout,
)
from cyborg_lite.drivers.nvidia.models import (
    MEMORY,
    MODELS,
    find_architecture,
    may_have_nvlink_fabric,
)
from cyborg_lite.drivers.nvidia.nvml import Nvml, Readings
from cyborg_lite.drivers.nvidia.nvswitch import (
    ATTRIBUTE,
    SWITCH_REASON,
    TRAIT,
    Fabric,
    is_switch,
    read_fabric,
)
from cyborg_lite.drivers.nvidia.selection import (
    VgpuCard,
    VgpuSelection,
    build_deployable,
    reserve_all,
    select_types,
    summarize_offer,
)
from cyborg_lite.drivers.nvidia.vgpus import VgpuManager, find_type_label
from cyborg_lite.drivers.pci import card_rules
from cyborg_lite.drivers.pci.card_modes import MODES_OPTION, DeclaredModes, check_mode
from cyborg_lite.drivers.pci.function_groups import GROUPS_OPTION
from cyborg_lite.drivers.pci.functions import PciDriver, custom_name
from cyborg_lite.drivers.pci.grouped import GroupedPciDriver
from cyborg_lite.drivers.prepared_handles import PreparedHandles
from cyborg_lite.drivers.vgpu_class import VGPU, VGPU_CLASS
from cyborg_lite.exceptions import DeviceBusy, DeviceGone
from cyborg_lite.model import typed_attributes
from cyborg_lite.model.devices import AllocatedHandle
from cyborg_lite.model.inventory import (
    Deployable,
    Device,
    DiscoveryResult,
    HandleType,
    Health,
)
from cyborg_lite.model.modes import DeviceMode, OfferedInventory
from cyborg_lite.model.traits import OWNER_CYBORG
from cyborg_lite.model.typed_attributes import (
    DRIVER_VERSION,
    AttributeDeclaration,
    TypedAttribute,
)
from cyborg_lite.model.usage import Usage

_GIB: Final = 1024  # MiB
_VENDOR_DRIVER: Final = 'nvidia'
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


class NvidiaGpu(GroupedPciDriver):
    """Driver for NVIDIA GPUs with and without vGPUs."""

    NAME: ClassVar[str] = 'nvidia_gpu_driver'
    VENDOR: ClassVar[str] = '10de'
    VENDOR_NAME: ClassVar[str] = 'NVIDIA'
    CLASSES: ClassVar[tuple[str, ...]] = ('0300', '0302', '0380')
    DEVICE_TYPE: ClassVar[str] = 'GPU'
    RESOURCE_CLASS: ClassVar[str] = 'PGPU'
    MODELS: ClassVar[Mapping[str, str]] = MODELS
    HOST_DRIVERS: ClassVar[tuple[str, ...]] = ('nvidia', 'nouveau')
    ATTRIBUTES: ClassVar[Sequence[AttributeDeclaration]] = (
        *GroupedPciDriver.ATTRIBUTES,
        typed_attributes.ARCHITECTURE,
        DRIVER_VERSION,
        typed_attributes.MEMORY,
        typed_attributes.MIG_PROFILE,
        typed_attributes.SAME_FABRIC,
        typed_attributes.VGPU_TYPE,
    )
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        *PciDriver.OPTIONS,
        card_rules.VGPU_TYPES,
        CHANGE_TIMEOUT,
        _CREATES_MDEVS,
        VGPU_CLASS,
        MODES_OPTION,
        GROUPS_OPTION,
        FABRIC_PARTITIONS,
    )

    # Any: each option has its own type.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        texts = (*options.get('vgpu_types', ()), *options.get('cyborg_rules', ()))
        self._rules = card_rules.CardRules(card_rules.parse_rules(texts))
        self._prepared = PreparedHandles()
        self._creates_mdevs = options.get('creates_mdevs', _CREATES_MDEVS.default)
        self._vgpu_class = options.get('vgpu_resource_class', VGPU)
        self._nvml = Nvml()
        self._types = VgpuTypeCache()
        # The last device of each divided card, by address: it is reported while the
        # card cannot be read.
        self._divided: dict[str, Device] = {}
        self._fabric = Fabric()  # as of the last scan
        seconds = options.get('change_timeout', CHANGE_TIMEOUT.default)
        writer = Writer(host.root, host.kernel, seconds)
        self._vgpus = VgpuManager(host, writer, self._prepared, self._nvml, self._types)
        self._instances = GpuInstances(host, writer)
        texts = options.get('fabric_partitions', ())
        self._partitions = FabricPartitions(writer, texts)
        self._declared = DeclaredModes(options, host.name)

    @classmethod
    def read_legacy_config(cls, section: Section) -> Mapping[str, Any]:
        """Return the rules in the vGPU sections of Cyborg.

        :raises ConfigurationError: a card has two types
        """
        return {'cyborg_rules': card_rules.read_cyborg_rules(section)}

    def restore_handles(self, handles: Iterable[AllocatedHandle]) -> None:
        """Accept the handles that earlier agent processes prepared."""
        self._prepared.add(handles)

    def restore_device(self, device: Device) -> None:
        """Accept a device that an earlier agent process discovered.

        The sum of its vGPUs is the memory of a card that no longer lists all types.
        """
        super().restore_device(device)
        product = device.std_board_info.get('product_id', '')
        for deployable in device.root.walk():
            vgpu_type = VgpuType(
                '', deployable.attributes.get('vgpu_type', ''), available=0
            )
            if vgpu_type.memory and not vgpu_type.uses_gpu_instance:
                size = deployable.total * vgpu_type.memory
                self._types.restore_memory(device.control_address, product, size)

    def prepare(self, handle: AllocatedHandle) -> None:
        """Create the vGPU of a handle.

        :raises DriverError: as ``VgpuManager.create``
        """
        if self.find_group(handle):
            return  # whole cards
        leaves_mdev = self._leaves_mdev(handle)
        self._vgpus.create(handle, self._may_disable, leaves_mdev=leaves_mdev)

    def release(self, handle: AllocatedHandle) -> None:
        """Remove the vGPU of a handle.

        :raises DriverError: as ``VgpuManager.remove``
        """
        if not self.find_group(handle):
            self._vgpus.remove(handle, self._may_disable)

    def is_prepared(self, handle: AllocatedHandle) -> bool:
        """Return True if the vGPU of a handle exists."""
        if self.find_group(handle):
            return True
        return self._vgpus.exists(handle, leaves_mdev=self._leaves_mdev(handle))

    def list_group_texts(self) -> Sequence[str]:
        """Return the groups, and the cards of each partition of the fabric."""
        partitions = self._options.get('fabric_partitions', ())
        cards = (text.partition('=')[2] for text in partitions)
        return (*super().list_group_texts(), *cards)

    def connect_group(self, group: Sequence[str]) -> None:
        """Activate the partition of a group, if it is one.

        :raises DriverError: Fabric Manager refuses, or does not answer
        """
        if self._partitions.has_group(group):
            self._partitions.activate(group)

    def disconnect_group(self, group: Sequence[str]) -> None:
        """Deactivate the partition of a group, if it is one.

        :raises DriverError: Fabric Manager refuses, or does not answer
        """
        if self._partitions.has_group(group):
            self._partitions.deactivate(group)

    def find_whole_obstacle(self, function: PciFunction) -> str | None:
        """Return why no guest can get the whole card, or None if one can."""
        if self._find_configured(function):
            return 'vgpu_types has a rule for it'
        if read_layout(function).existing:
            return 'it has vGPUs'
        return super().find_whole_obstacle(function)

    def modes(self, device: Device) -> Sequence[DeviceMode]:
        """Return the layouts of GPU instances (MIG) that a divided card can have."""
        card = PciFunction(self._host, device.control_address)
        profiles = PROFILES.get(card.device, ())
        if card.driver != _VENDOR_DRIVER or not self._find_configured(card):
            return ()
        names = list_layouts(profiles, self._declared.list_names())
        guess = self._instances.guess_layout(card.address, profiles)
        if guess and not any(self.has_mode(device, name) for name in names):
            names.append(guess)
        # A layout of vGPUs is thousands of files: it is read once.
        vgpus = read_layout(card)
        return tuple(
            DeviceMode(
                name,
                tuple(sorted(self._predict(card, vgpus, parse_layout(profiles, name)))),
                is_current=self.has_mode(device, name),
            )
            for name in names
        )

    def has_mode(self, device: Device, mode: str) -> bool:
        """Return True if a card may have this layout."""
        card = PciFunction(self._host, device.control_address)
        instances = parse_layout(PROFILES.get(card.device, ()), mode)
        if not instances:
            return False
        return self._instances.has_layout(card.address, instances)

    def declared_mode(self, device: Device) -> str | None:
        """Return the declared layout with its profiles in order."""
        declared = self._declared.find(device)
        product = device.std_board_info.get('product_id', '')
        instances = parse_layout(PROFILES.get(product, ()), declared or '')
        return format_layout(instances) if instances else declared

    def set_mode(self, device: Device, mode: str) -> Device:
        """Replace the GPU instances of a card.

        :raises DeviceBusy: the card has vGPUs, or the tool refuses
        :raises DriverError: the card has no such layout
        """
        card = PciFunction(self._host, device.control_address)
        instances = parse_layout(PROFILES.get(card.device, ()), mode)
        if card.driver != _VENDOR_DRIVER or not instances:
            check_mode(self.modes(device), device, mode)
        if read_layout(card).existing:
            raise DeviceBusy(address=card.address, reason='it has vGPUs')
        with self._nvml.keep_closed():
            self._instances.set_layout(card.address, instances)
        result = self.classify(PciFunction(self._host, card.address))
        if result is None or result.device is None:
            raise DeviceGone(address=card.address)
        return result.device

    def _predict(
        self, card: PciFunction, vgpus: VgpuLayout, instances: Sequence[Profile]
    ) -> Iterator[OfferedInventory]:
        """Yield what a card offers with a layout of GPU instances."""
        fabric = (TRAIT,) if self._has_fabric(card) else ()
        for text in self._find_configured(card):
            vgpu_type = vgpus.find_type(text) or VgpuType('', text, available=0)
            total = count_profile(instances, vgpu_type)
            if total:
                trait = custom_name('NVIDIA', card.device, vgpu_type.label)
                traits = tuple(sorted((OWNER_CYBORG, trait, *fabric)))
                yield OfferedInventory(self._vgpu_class, total, traits)

    def _leaves_mdev(self, handle: AllocatedHandle) -> bool:
        is_mdev = handle.type == HandleType.MDEV
        return not self._creates_mdevs and is_mdev and handle.for_guest

    def discover(self) -> Iterator[DiscoveryResult]:
        """Yield one result per PCI function of the vendor that is part of a card."""
        present = {function.address for function in self._host.pci_functions()}
        self._types.remove_absent(present)
        for address in self._divided.keys() - present:
            del self._divided[address]
        self._fabric = read_fabric(self._host, self._scan)
        yield from super().discover()

    def classify_companion(self, function: PciFunction) -> DiscoveryResult | None:
        """Return the result for an NVSwitch or for another function beside cards."""
        if is_switch(function):
            return self.build_result(function, SWITCH_REASON)
        return super().classify_companion(function)

    def traits(self, function: PciFunction) -> tuple[str, ...]:
        """Return the traits of a whole card, and the one of a fabric of NVSwitches."""
        traits = super().traits(function)
        return (*traits, TRAIT) if self._has_fabric(function) else traits

    def list_attributes(self, function: PciFunction) -> Iterator[TypedAttribute]:
        """Yield the typed attributes of whole cards and of vGPUs."""
        yield from super().list_attributes(function)
        architecture = find_architecture(function.device)
        if architecture is not None:
            yield typed_attributes.ARCHITECTURE.of(architecture)
        if self._partitions.has_group(self._function_groups.find(function.address)):
            yield typed_attributes.SAME_FABRIC.of(True)

    def build_whole(self, function: PciFunction) -> Deployable:
        """Return the deployable of a whole card, with the size of its fabric."""
        root = super().build_whole(function)
        if function.device in MEMORY:
            memory = typed_attributes.MEMORY.of(MEMORY[function.device] * _GIB)
            root = replace(root, typed_attributes=(memory,))
        if not self._has_fabric(function):
            return root
        number = str(self._fabric.switches)
        return replace(root, attributes={**root.attributes, ATTRIBUTE: number})

    def describe_offer(self, function: PciFunction) -> str:
        """Return the reason in the result of a whole card that is offered."""
        text = super().describe_offer(function)
        return f'{text}, {self._fabric}' if self._has_fabric(function) else text

    def _has_fabric(self, function: PciFunction) -> bool:
        is_sxm = may_have_nvlink_fabric(function.device)
        return self._fabric.switches > 0 and is_sxm

    def classify_card(self, function: PciFunction) -> DiscoveryResult:
        """Return the result for a card: whole, divided, or not offered."""
        layout = read_layout(function)
        prepared_types = self._list_prepared_types(layout)
        layout = self._types.complete_types(function, layout, prepared_types)
        configured = self._find_configured(function)
        if not configured and layout.is_undivided:
            self._divided.pop(function.address, None)
            return super().classify_card(function)
        if configured and layout.mode in (VgpuMode.NONE, VgpuMode.UNKNOWN):
            return self._classify_without_vgpus(function, configured)
        selection = select_types(layout, configured, self._prepared)
        return self._build_divided(function, layout, selection)

    def configured_types(self, *names: str) -> tuple[str, ...]:
        """Return the vGPU types configured for a card with these names."""
        return self._rules.find_values(*names)

    def read_serial(self, function: PciFunction) -> str | None:
        """Return the GPU uuid, which the vendor driver shows while bound."""
        uuid = read_driver_information(self._host, function.address, 'GPU UUID')
        # The driver shows question marks until it has initialized the card.
        return None if uuid is None or '?' in uuid else uuid

    def describe_virtual(self, function: PciFunction) -> str:
        """Return the card of a virtual function and the vGPU that it carries."""
        text = super().describe_virtual(function)
        current = function.text(CURRENT_TYPE)
        if mdevs := list_mdevs(function):
            return f'{text}: carries {mdevs[0].type_id} {mdevs[0].uuid}'
        if current is not None and current != NO_TYPE:
            card = PciFunction(self._host, function.physfn or '')
            label = self._types.find_label(card, current)
            return f'{text}: vGPU type {label or current} is set'
        can_carry = current == NO_TYPE or function.names(MDEV_TYPES)
        return f'{text}: free' if can_carry else text

    def build_lost(self, function: PciFunction, reason: str) -> DiscoveryResult:
        """Return the result for a card that does not respond.

        The card keeps its providers, with the whole inventory reserved.
        """
        if function.address in self._divided or self._find_configured(function):
            return self._build_unreadable(function, reason)
        return super().build_lost(function, reason)

    def read_usage(self, device: Device) -> Usage:
        """Return the telemetry of a card; load and memory come from NVML."""
        function = PciFunction(self._host, device.control_address)
        usage = super().read_usage(device)
        readings: Readings = {}
        if function.driver == _VENDOR_DRIVER and usage.health is not Health.FAILED:
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

    def _build_divided(
        self, function: PciFunction, layout: VgpuLayout, selection: VgpuSelection
    ) -> DiscoveryResult:
        if not selection.types:
            health = Health.BUSY if selection.foreign else Health.OK
            return self.build_withheld(function, selection.reason, health)
        table_size = MEMORY.get(function.device)
        memory = find_card_memory(table_size, self._types.find_memory(function))
        instances = list_gpu_instances(self._host, function.address)
        version = read_driver_version(self._host)
        totals = {
            item.label: count_capacity(layout, item, memory, instances)
            for item in selection.types
        }
        root = build_deployable(
            VgpuCard(
                name=self.root_name(function),
                address=function.address,
                product=function.device,
                layout=layout,
                selection=selection,
                totals=totals,
                memory=memory,
                more_traits=(TRAIT,) if self._has_fabric(function) else (),
                # A guest with a whole card brings a driver of its own.
                driver=(DRIVER_VERSION.of(version),) if version else (),
                resource_class=self._vgpu_class,
            )
        )
        device = replace(
            self.build_device(function, root),
            health=Health.BUSY if selection.is_blocked else Health.OK,
            health_reason=selection.reason,
        )
        self._divided[function.address] = device
        summary = summarize_offer(root, selection, layout.existing)
        return self.build_result(function, summary, device)

    def _classify_without_vgpus(
        self, function: PciFunction, configured: Sequence[str]
    ) -> DiscoveryResult:
        """Return the result for a card with configured types and without vGPU files."""
        types = ' and '.join(configured)
        if function.has_guest_driver:
            # A guest may have the whole card: divide it after the release.
            root = replace(self.build_whole(function), reserved=1)
            reason = f'The change to {types} is refused while it is bound to vfio'
            device = replace(self.build_device(function, root), health_reason=reason)
            return self.build_result(function, reason, device)
        if function.driver != _VENDOR_DRIVER:
            reason = f'driver {_VENDOR_DRIVER} is not bound to it'
            return self._build_unreadable(function, reason)
        planned = plan_layout(function, configured)
        if planned is not None:
            selection = select_types(planned, configured, self._prepared)
            return self._build_divided(function, planned, selection)
        reason = (
            f'no vGPU type {types} is visible: its virtual functions may be disabled, '
            'or the driver may lack vGPU support'
        )
        return self._build_unreadable(function, reason)

    def _build_unreadable(self, function: PciFunction, reason: str) -> DiscoveryResult:
        """Return the last readable device of a card, with everything reserved."""
        last_device = self._divided.get(function.address)
        if last_device is None:
            return self.build_withheld(function, reason, Health.FAILED)
        device = replace(
            last_device,
            root=reserve_all(last_device.root),
            health=Health.FAILED,
            health_reason=reason,
        )
        return self.build_result(function, reason, device)

    def _may_disable(self, function: PciFunction) -> bool:
        """Return True if a card offers the same without its virtual functions."""
        return plan_layout(function, self._find_configured(function)) is not None

    def _list_prepared_types(self, layout: VgpuLayout) -> Iterator[VgpuType]:
        """Yield the types of own vGPUs. A full card does not list any type."""
        for vgpu in layout.existing:
            if vgpu.uuid is None:
                label = find_type_label(vgpu, self._prepared)
                if label is not None:
                    yield VgpuType(vgpu.type_id, label, available=0)

    def _find_configured(self, function: PciFunction) -> tuple[str, ...]:
        uuid = self.hardware_id(function)
        # Cyborg and Nova name an Ampere card by the addresses of its VFs only.
        count = function.number('sriov_totalvfs') or 0
        virtual = function.virtfns or list_vf_addresses(function, count)
        return self.configured_types(function.address, uuid, function.ids, *virtual)


def _to_int(value: float | None) -> int | None:
    return None if value is None else int(value)
