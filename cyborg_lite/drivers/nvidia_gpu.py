# SPDX-License-Identifier: Apache-2.0
"""NVIDIA GPUs: whole cards by passthrough, or cut into vGPUs as the operator says."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers import vgpu_rules
from cyborg_lite.drivers.base import Section
from cyborg_lite.drivers.held import Held
from cyborg_lite.drivers.kernel import CHANGE_TIMEOUT, Writer
from cyborg_lite.drivers.nvidia_capacity import (
    capacity,
    card_memory,
    gpu_instances,
    information,
)
from cyborg_lite.drivers.nvidia_carving import (
    CURRENT_TYPE,
    NO_TYPE,
    Carving,
    KnownTypes,
    Way,
    carving,
    created_mdevs,
    planned_carving,
)
from cyborg_lite.drivers.nvidia_choice import Choice, choose
from cyborg_lite.drivers.nvidia_models import MEMORY, MODELS
from cyborg_lite.drivers.nvidia_offer import Card, reserved_all, total_of, vgpus
from cyborg_lite.drivers.nvidia_types import MDEV_TYPES, VgpuType
from cyborg_lite.drivers.nvidia_vgpus import Vgpus
from cyborg_lite.drivers.nvml import Nvml
from cyborg_lite.drivers.pci import PciDriver
from cyborg_lite.drivers.sysfs import Host, PciFunction
from cyborg_lite.drivers.virtual_functions import planned
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Device, Finding, Health
from cyborg_lite.model.usage import Usage

_VENDOR_DRIVER: Final = 'nvidia'


class NvidiaGpu(PciDriver):
    """Cards with a display function, told from their virtual functions by links."""

    NAME: ClassVar[str] = 'nvidia_gpu_driver'
    VENDOR: ClassVar[str] = '10de'
    VENDOR_NAME: ClassVar[str] = 'NVIDIA'
    CLASSES: ClassVar[tuple[str, ...]] = ('0300', '0302', '0380')
    DEVICE_TYPE: ClassVar[str] = 'GPU'
    RESOURCE_CLASS: ClassVar[str] = 'PGPU'
    MODELS: ClassVar[Mapping[str, str]] = MODELS
    HOST_DRIVERS: ClassVar[tuple[str, ...]] = ('nvidia', 'nouveau')
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        *PciDriver.OPTIONS,
        vgpu_rules.RULES,
        CHANGE_TIMEOUT,
    )

    # Any: as the options of drivers are.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        texts = (*options.get('vgpu_types', ()), *options.get('cyborg_rules', ()))
        self._rules = vgpu_rules.Rules(vgpu_rules.parse(texts))
        self._held = Held()
        self._nvml = Nvml()
        # What a card said before it fell silent, by address.
        self._types = KnownTypes()
        self._cut_cards: dict[str, Device] = {}
        seconds = options.get('change_timeout', CHANGE_TIMEOUT.default)
        writer = Writer(host.root, host.kernel, seconds)
        self._vgpus = Vgpus(host, writer, self._held, self._nvml, self._types)

    @classmethod
    def inherited(cls, section: Section) -> Mapping[str, Any]:
        return {'cyborg_rules': vgpu_rules.of_cyborg(section)}

    def recall(self, handles: Iterable[HeldHandle]) -> None:
        self._held.add(handles)

    def prepare(self, handle: HeldHandle) -> None:
        self._vgpus.make(handle, self._dispensable)

    def release(self, handle: HeldHandle) -> None:
        self._vgpus.unmake(handle, self._dispensable)

    def is_prepared(self, handle: HeldHandle) -> bool:
        return self._vgpus.is_made(handle)

    def discover(self) -> Iterator[Finding]:
        present = {function.address for function in self._host.pci_functions()}
        self._types.forget(present)
        for address in self._cut_cards.keys() - present:
            del self._cut_cards[address]
        yield from super().discover()

    def judge_card(self, function: PciFunction) -> Finding:
        found = carving(function)
        found = self._types.completed(function, found, self._recalled_types(found))
        wanted = self._wanted(function)
        if not wanted and found.whole:
            self._cut_cards.pop(function.address, None)
            return super().judge_card(function)
        if wanted and found.way in (Way.NONE, Way.UNKNOWN):
            return self._uncut(function, wanted)
        return self._cut(function, found, choose(found, wanted, self._held))

    def wanted_types(self, *names: str) -> tuple[str, ...]:
        """What the operator wants the card of these names to be cut into."""
        return self._rules.wanted(*names)

    def serial(self, function: PciFunction) -> str | None:
        return information(self._host, function.address, 'GPU UUID')

    def virtual_state(self, function: PciFunction) -> str:
        state = super().virtual_state(function)
        current = function.text(CURRENT_TYPE)
        if made := created_mdevs(function):
            return f'{state}: carries {made[0].type_id} {made[0].uuid}'
        if current not in (None, NO_TYPE):
            card = PciFunction(self._host, function.physfn or '')
            name = self._types.label(card, str(current))
            return f'{state}: vGPU type {name or current} is set'
        can_carry = current == NO_TYPE or function.names(MDEV_TYPES)
        return f'{state}: free' if can_carry else state

    def lost(self, function: PciFunction, reason: str) -> Finding:
        cut = function.address in self._cut_cards or self._wanted(function)
        return self._silent(function, reason) if cut else super().lost(function, reason)

    def usage(self, device: Device) -> Usage:
        function = PciFunction(self._host, device.address)
        usage = super().usage(device)
        figures: Mapping[str, float] = {}
        if function.driver == _VENDOR_DRIVER and usage.health is not Health.FAILED:
            figures = self._nvml.figures(device.address)
        total = sum(
            part.total for part in device.root.walk() if part.resource_class == 'VGPU'
        )
        return replace(
            usage,
            busy_percent=figures.get('busy_percent'),
            memory_used=_whole_number(figures.get('memory_used')),
            memory_total=_whole_number(figures.get('memory_total')),
            temperature=figures.get('temperature', usage.temperature),
            power=figures.get('power', usage.power),
            units_used=len(carving(function).existing) if total else None,
            units_total=total or None,
        )

    def _cut(self, function: PciFunction, found: Carving, choice: Choice) -> Finding:
        if not choice.types:
            health = Health.BUSY if choice.strangers else Health.OK
            return self.withheld(function, choice.reason, health)
        memory = card_memory(found, MEMORY.get(function.device))
        instances = gpu_instances(self._host, function.address)
        totals = {
            each.label: capacity(found, each, memory, instances)
            for each in choice.types
        }
        root = vgpus(
            Card(
                name=self.name_of(function),
                address=function.address,
                product=function.device,
                found=found,
                choice=choice,
                totals=totals,
            )
        )
        device = replace(
            self.device(function, root),
            health=Health.BUSY if choice.closed else Health.OK,
            health_reason=choice.reason,
        )
        self._cut_cards[function.address] = device
        return self.finding(function, total_of(root, choice, found.existing), device)

    def _uncut(self, function: PciFunction, wanted: Sequence[str]) -> Finding:
        """A card that shall be cut, and nothing says into what it can be."""
        types = ' and '.join(wanted)
        if function.guest_driver:
            # A guest may have it: it stays what it is until it is given back.
            whole = replace(self.whole(function), reserved=1)
            reason = f'The change to {types} is refused while it is bound to vfio'
            device = replace(self.device(function, whole), health_reason=reason)
            return self.finding(function, reason, device)
        if function.driver != _VENDOR_DRIVER:
            return self._silent(function, f'driver {_VENDOR_DRIVER} is not bound to it')
        planned = planned_carving(function, wanted)
        if planned is not None:
            return self._cut(function, planned, choose(planned, wanted, self._held))
        reason = (
            f'no vGPU type {types} to be seen: its virtual functions may be off, or '
            'the driver be without vGPU support'
        )
        return self._silent(function, reason)

    def _silent(self, function: PciFunction, reason: str) -> Finding:
        """What it was when it could last be read is kept, and nobody is given it."""
        before = self._cut_cards.get(function.address)
        if before is None:
            return self.withheld(function, reason, Health.FAILED)
        device = replace(
            before,
            root=reserved_all(before.root),
            health=Health.FAILED,
            health_reason=reason,
        )
        return self.finding(function, reason, device)

    def _dispensable(self, function: PciFunction) -> bool:
        """Whether it is offered with its virtual functions off as it is with them."""
        return planned_carving(function, self._wanted(function)) is not None

    def _recalled_types(self, found: Carving) -> Iterator[VgpuType]:
        """A full card lists nothing; what was made of it names its type."""
        for vgpu in found.existing:
            label = self._held.label_of(vgpu) if vgpu.uuid is None else None
            if label is not None:
                yield VgpuType(vgpu.type_id, label, available=0)

    def _wanted(self, function: PciFunction) -> tuple[str, ...]:
        uuid = self.hardware_id(function)
        # Cyborg and Nova know an Ampere card by its virtual functions alone.
        count = function.number('sriov_totalvfs') or 0
        virtual = function.virtfns or planned(function, count)
        return self.wanted_types(function.address, uuid, function.ids, *virtual)


def _whole_number(figure: float | None) -> int | None:
    return None if figure is None else int(figure)
