# SPDX-License-Identifier: Apache-2.0
"""Discovery and passthrough of PCI functions, shared by the vendor drivers.

A vendor driver derives from ``PciDriver`` and sets class variables. It overrides a
method only where its hardware differs. Its constructor hands in the parts: ``offer``
for a card that is divided, ``groups``, ``handles`` and ``card_modes``. The abilities
of the driver contract that call these parts come from ``GroupedPciDriver``,
``PreparingPciDriver`` and ``ModesPciDriver``.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Protocol

from oslo_log import log

from cyborg_lite.drivers.base import (
    ChecksHandles,
    Options,
    PreparesHandles,
    TracksHandles,
)
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.host.timed_scan import TimedScan
from cyborg_lite.drivers.host.tools import Tools
from cyborg_lite.drivers.nvme_cleaning import CleanMethod, NvmeCleaner
from cyborg_lite.drivers.pci.cards import BOOT_VGA, LOST, PciCards
from cyborg_lite.drivers.pci.function_cleaning import FunctionCleaner
from cyborg_lite.drivers.pci.function_groups import GROUP_ATTRIBUTES
from cyborg_lite.drivers.pci.functions import handle_address, name_companion
from cyborg_lite.drivers.pci.groups import GroupOffer
from cyborg_lite.errors.drivers import DeviceGone, DriverError
from cyborg_lite.model.devices.cleaning import CleanStep
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import (
    Device,
    DiscoveryResult,
    HandleType,
    Health,
)
from cyborg_lite.model.inventory.typed_attributes import AttributeDeclaration

LOG = log.getLogger(__name__)


class Offer(Protocol):
    """A way to divide the cards of one driver."""

    def classify_card(self, card: PciFunction) -> DiscoveryResult | None:
        """Return the result for a card that works; None: it stays whole."""

    def classify_lost(self, card: PciFunction, reason: str) -> DiscoveryResult | None:
        """Return the result for a card that is out of order; None: it is whole."""

    def describe_virtual(self, function: PciFunction) -> str:
        """Return what a virtual function carries, or who may have it; or empty."""


class Handles(PreparesHandles, ChecksHandles, TracksHandles, Protocol):
    """Prepares the attach handles of divided cards."""


class PciDriver(PciCards):
    """Discovers the cards of one vendor and offers each whole, or as ``offer`` does."""

    offer: Offer | None = None

    def __init__(self, host: Host, options: Options) -> None:
        super().__init__(host, options)
        self._scan = TimedScan()
        self._group_offer = GroupOffer(self)
        drives = NvmeCleaner(Tools(host.kernel), CleanMethod.AUTO)
        self._cleaner = FunctionCleaner(self._writer, drives, self.read_reset_facts)

    def restore_device(self, device: Device) -> None:
        self.memory.restore(device, self.NAME)
        for deployable in device.root.walk():
            for handle in deployable.handles:
                self._iommu_groups.chosen.add(handle_address(handle.info))

    def discover(self) -> Iterator[DiscoveryResult]:
        functions = list(self._host.pci_functions())
        self.memory.remove_absent({function.address for function in functions})
        for reading in self._scan.read(functions, self._classify_safely):
            result = reading.value
            if reading.is_hung:
                result = self._build_hung(reading.function)
            else:
                self.memory.keep_result(reading.function.address, result)
            if result is not None:
                yield result

    def list_clean_steps(self, handle: AllocatedHandle) -> Sequence[CleanStep]:
        return self._cleaner.list_steps(self._find_function(handle))

    def run_clean_step(
        self, handle: AllocatedHandle, name: str, abort: threading.Event
    ) -> str:
        """Run a step; no step can be aborted."""
        function = self._find_function(handle)
        user = self.find_host_user(function) if function.is_present else None
        if user is not None:
            reason = f'{function.address} is in use by the host: {user}.'
            raise DriverError(reason=reason)
        return self._cleaner.run_step(function, name)

    def _find_function(self, handle: AllocatedHandle) -> PciFunction:
        """Return the function of a handle.

        :raises DriverError: the handle is a mediated device, or a part of a card
        """
        if handle.type != HandleType.PCI:
            raise DriverError(reason=f'{handle.key} is no PCI function.')
        return PciFunction(self._host, handle_address(handle.info))

    def read_device(self, address: str) -> Device:
        """Return the device of a card, read anew.

        :raises DeviceGone: there is none
        """
        result = self.classify(PciFunction(self._host, address))
        if result is None or result.device is None:
            raise DeviceGone(address=address)
        return result.device

    def _build_hung(self, function: PciFunction) -> DiscoveryResult | None:
        """Return the result for a function that cannot be read; it is not read again.

        :returns: the last device, degraded; without one, a result without device, or
            None if the function is known to be of another vendor
        """
        reason = 'it does not answer: a read from its files has not returned'
        last = self.memory.results.get(function.address)
        if last is not None and last.device is not None:
            device = replace(last.device, health=Health.DEGRADED, health_reason=reason)
            return replace(last, reason=reason, device=device)
        vendor, device_id, pci_class = (
            function.read_cached(name) for name in ('vendor', 'device', 'pci_class')
        )
        if not vendor or not pci_class or not pci_class.startswith(self.CLASSES):
            return None
        ids = f'{vendor}:{device_id}'
        return DiscoveryResult(function.address, ids, pci_class, self.NAME, reason)

    def _classify_safely(self, function: PciFunction) -> DiscoveryResult | None:
        """Return the result for a function. A fault of one card costs this card."""
        try:
            return self.classify(function)
        except Exception as error:
            # The files of a broken card may contain anything.
            LOG.exception('Driver %s cannot read %s', self.NAME, function.address)
            reason = f'it cannot be read: {type(error).__name__}'
        try:
            return self.build_withheld(function, reason)
        except Exception:  # noqa: BLE001  # probably the same, which is in the log
            return self.build_result(function, reason)

    def classify(self, function: PciFunction) -> DiscoveryResult | None:
        """Return the result for a function, or None if this driver is not for it."""
        return self._group_offer.classify(function) or self._classify_single(function)

    def _classify_single(self, function: PciFunction) -> DiscoveryResult | None:
        if not self.is_own_vendor(function):
            return None
        if not self.is_card_function(function):
            return self.classify_companion(function)
        if function.is_virtual:
            card = function.physfn or 'a card being set up'
            content = self.offer.describe_virtual(function) if self.offer else ''
            reason = f'virtual function of {card}: {content}'.removesuffix(': ')
            return self.build_result(function, reason)
        if function.is_lost:
            return self.classify_lost(function, LOST)
        if function.is_boot_vga:
            return self.build_withheld(function, BOOT_VGA)
        return self.classify_card(function)

    def classify_card(self, function: PciFunction) -> DiscoveryResult:
        """Return the result for a physical function that works and is not boot VGA."""
        fault = self.find_fault(function)
        if fault is not None:
            return self.classify_lost(function, fault)
        divided = self.offer.classify_card(function) if self.offer else None
        if divided is not None:
            return divided
        obstacle = self.find_obstacle(function)
        if obstacle is not None:
            return self.build_withheld(function, obstacle)
        device = self.build_device(function, self.build_whole(function))
        return self.build_result(function, self.describe_offer(function), device)

    def classify_lost(self, function: PciFunction, reason: str) -> DiscoveryResult:
        """Return the result for a card that is out of order or does not respond.

        The card keeps its provider, with the whole inventory reserved.
        """
        divided = self.offer.classify_lost(function, reason) if self.offer else None
        if divided is not None:
            return divided
        return self.build_reserved(function, self.build_whole(function), reason)

    def classify_companion(self, function: PciFunction) -> DiscoveryResult | None:
        """Return the result for a function that is no card; None: not beside one."""
        if self.IS_LIMITED:
            return None
        for sibling in function.siblings:
            if self.is_card_function(sibling) and not sibling.is_virtual:
                subject = name_companion(function)
                reason = f'{subject} function of {sibling.address}'
                return self.build_result(function, reason)
        return None


class GroupedPciDriver(PciDriver):
    """A driver with the option ``groups``."""

    ATTRIBUTES: ClassVar[Sequence[AttributeDeclaration]] = (
        *PciDriver.ATTRIBUTES,
        *GROUP_ATTRIBUTES,
    )

    def find_group(self, handle: AllocatedHandle) -> str:
        return self.groups.find_group(handle)

    def activate(self, members: Sequence[AllocatedHandle]) -> None:
        self.groups.activate(members)

    def deactivate(self, members: Sequence[AllocatedHandle]) -> None:
        self.groups.deactivate(members)


class PreparingPciDriver(PciDriver):
    """A driver whose ``handles`` are prepared on the host."""

    handles: Handles

    def restore_handles(self, handles: Iterable[AllocatedHandle]) -> None:
        self.handles.restore_handles(handles)

    def prepare(self, handle: AllocatedHandle) -> None:
        self.handles.prepare(handle)

    def release(self, handle: AllocatedHandle) -> None:
        self.handles.release(handle)

    def is_prepared(self, handle: AllocatedHandle) -> bool:
        return self.handles.is_prepared(handle)
