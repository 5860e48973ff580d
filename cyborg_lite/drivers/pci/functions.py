# SPDX-License-Identifier: Apache-2.0
"""Discovery and passthrough of whole PCI functions, shared by the vendor drivers.

A vendor driver derives from ``PciDriver`` and sets class variables. It overrides a
method only where its hardware differs.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from oslo_config import cfg
from oslo_log import log

from cyborg_lite.drivers.host import telemetry
from cyborg_lite.drivers.host.passthrough import IommuGroups
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.host.timed_scan import TimedScan
from cyborg_lite.model import typed_attributes
from cyborg_lite.model.host_topology import BRIDGES_KEY, format_bridges
from cyborg_lite.model.inventory import (
    AttachHandle,
    Deployable,
    Device,
    DiscoveryResult,
    HandleType,
    Health,
)
from cyborg_lite.model.traits import OWNER_CYBORG
from cyborg_lite.model.typed_attributes import AttributeDeclaration, TypedAttribute
from cyborg_lite.model.usage import Usage

LOG = log.getLogger(__name__)

_MAX_NAME_LENGTH: Final = 255  # characters, in Placement

# Attributes that cannot be read while the card is suspended or in a guest.
_KEPT_NAMES: Final = frozenset(
    {
        typed_attributes.FIRMWARE.name,
        typed_attributes.LINK_SPEED.name,
        typed_attributes.MAX_POWER.name,
    }
)
# Such as `8.0 GT/s PCIe`. Kernels before 5.7 write `8 GT/s`.
_LINK_SPEED: Final = re.compile(r'(\d{1,4})(?:\.(\d))? GT/s')
# Functions beside the computing one on the same card, by the first four digits of the
# class code (PCI Code and ID Assignment Specification).
_COMPANIONS: Final = {'0403': 'audio', '0c03': 'USB', '0c80': 'USB-C'}


def custom_name(*words: str) -> str:
    """Return a name that Placement accepts as a custom trait or resource class.

    >>> custom_name('NVIDIA', '1eb8')
    'CUSTOM_NVIDIA_1EB8'
    """
    text = re.sub('[^A-Z0-9_]', '_', '_'.join(words).upper())
    return f'CUSTOM_{text.removeprefix("CUSTOM_")}'[:_MAX_NAME_LENGTH]


def handle_address(info: Mapping[str, str]) -> str:
    """Return the PCI address in the info of a handle; empty if it has none."""
    try:
        return '{domain}:{bus}:{device}.{function}'.format_map(info)
    except KeyError:
        return ''


def handle_info(address: str) -> dict[str, str]:
    """Return a PCI address in the format that Nova reads."""
    domain, bus, slot = address.split(':')
    device, function = slot.split('.')
    return {'domain': domain, 'bus': bus, 'device': device, 'function': function}


class PciDriver:
    """Discovers the cards of one vendor and offers each as one attach handle."""

    NAME: ClassVar[str]
    VENDOR: ClassVar[str]  # four hex digits
    VENDOR_NAME: ClassVar[str]  # in traits, and the driver name in the API
    CLASSES: ClassVar[tuple[str, ...]]  # prefixes of the class codes of the cards
    DEVICE_TYPE: ClassVar[str]  # GPU, FPGA, AICHIP, QAT, NIC, SSD, PCI
    RESOURCE_CLASS: ClassVar[str]
    # Model name by device id, or by both ids in drivers for several vendors.
    MODELS: ClassVar[Mapping[str, str]] = {}
    IS_LIMITED: ClassVar[bool] = False  # True: cards of other models are ignored
    # Host drivers from which a card may be unbound for a guest; empty: all drivers.
    HOST_DRIVERS: ClassVar[tuple[str, ...]] = ()
    ATTRIBUTES: ClassVar[Sequence[AttributeDeclaration]] = (
        typed_attributes.LINK_SPEED,
        typed_attributes.NUMA_NODE,
    )

    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        cfg.BoolOpt(
            'offer_without_reset',
            default=False,
            help="""
Offer cards that the kernel cannot reset. The next guest may be able to read
what the previous guest left in such a card. Turn it on only if all guests
trust one another.
""",
        ),
    )

    # Any: each option has its own type.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self._host = host
        self._options = options
        # By address and ids, as last read.
        self._serials: dict[tuple[str, str], str] = {}
        # By address and name, as last read: attributes that a suspended card or one of
        # a guest does not show.
        self._kept_attributes: dict[str, dict[str, TypedAttribute]] = {}
        self._groups = IommuGroups()
        self._scan = TimedScan()
        self._last_results: dict[str, DiscoveryResult] = {}  # with a device, by address

    def restore_device(self, device: Device) -> None:
        """Accept a device that an earlier agent process discovered."""
        function = PciFunction(self._host, device.control_address)
        self._last_results[function.address] = DiscoveryResult(
            function.address,
            f'{device.vendor}:{device.std_board_info.get("product_id", "")}',
            device.std_board_info.get('class', ''),
            self.NAME,
            '',
            device,
        )
        for deployable in device.root.walk():
            for handle in deployable.handles:
                self._groups.restore_choice(handle_address(handle.info))
            for attribute in deployable.typed_attributes:
                self._keep_attribute(function, attribute)

    def discover(self) -> Iterator[DiscoveryResult]:
        """Yield one result per PCI function of the vendor that is part of a card."""
        present = {function.address for function in self._host.pci_functions()}
        for key in [key for key in self._serials if key[0] not in present]:
            del self._serials[key]
        for address in self._kept_attributes.keys() - present:
            del self._kept_attributes[address]
        functions = list(self._host.pci_functions())
        for address in self._last_results.keys() - present:
            del self._last_results[address]
        for reading in self._scan.read(functions, self._classify_safely):
            result = reading.value
            if reading.is_hung:
                result = self._build_hung(reading.function)
            elif result is not None and result.device is not None:
                self._last_results[result.address] = result
            else:
                self._last_results.pop(reading.function.address, None)
            if result is not None:
                yield result

    def _build_hung(self, function: PciFunction) -> DiscoveryResult | None:
        """Return the result for a function that cannot be read; it is not read again.

        :returns: the last device, degraded; without one, a result without device, or
            None if the function is known to be of another vendor
        """
        reason = 'it does not answer: a read from its files has not returned'
        last = self._last_results.get(function.address)
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
        if not self.is_own_vendor(function):
            return None
        if not self.is_card_function(function):
            return self.classify_companion(function)
        if function.is_virtual:
            return self.build_result(function, self.describe_virtual(function))
        if function.is_lost:
            return self.build_lost(function, 'lost: its config space reads all ones')
        if function.is_boot_vga:
            return self.build_withheld(function, 'boot VGA of the host')
        return self.classify_card(function)

    def classify_card(self, function: PciFunction) -> DiscoveryResult:
        """Return the result for a physical function that works and is not boot VGA."""
        fault = self.find_fault(function)
        if fault is not None:
            return self.build_lost(function, fault)
        obstacle = self.find_obstacle(function)
        if obstacle is not None:
            return self.build_withheld(function, obstacle)
        device = self.build_device(function, self.build_whole(function))
        return self.build_result(function, self.describe_offer(function), device)

    def recognizes(self, function: PciFunction) -> bool:
        """Return True if a function is a card of this driver or a VF of such a card."""
        return self.is_own_vendor(function) and self.is_card_function(function)

    def is_own_vendor(self, function: PciFunction) -> bool:
        """Return True if a function is of a vendor of this driver."""
        return function.vendor == self.VENDOR

    def is_card_function(self, function: PciFunction) -> bool:
        """Return True if a function of this vendor is a card or a VF of a card."""
        if not function.pci_class.startswith(self.CLASSES):
            return False
        if not self.IS_LIMITED:
            return True
        physical = PciFunction(self._host, function.physfn or function.address)
        if function.is_virtual and not physical.device:
            return True  # an unreadable card must not hide its virtual functions
        return not {physical.device, physical.ids}.isdisjoint(self.MODELS)

    def find_fault(self, function: PciFunction) -> str | None:
        """Return why a card is out of order, or None if it works.

        Such a card keeps its provider, with the whole inventory reserved.
        """
        return None

    def find_host_user(self, function: PciFunction) -> str | None:
        """Return what on the host uses a function, or None if nothing does."""
        return None

    def find_obstacle(self, function: PciFunction) -> str | None:
        """Return why a guest cannot have a function, or None if it can."""
        user = self.find_host_user(function)
        if user is not None:
            return f'in use by the host: {user}'
        return self.find_passthrough_obstacle(function)

    def find_passthrough_obstacle(self, function: PciFunction) -> str | None:
        """Return why passthrough of a function is impossible, or None."""
        return (
            self.find_group_obstacle(function)
            or self._find_driver_obstacle(function)
            or self._find_reset_obstacle(function)
        )

    def find_group_obstacle(self, function: PciFunction) -> str | None:
        """Return why the IOMMU group of a function prevents passthrough, or None."""
        together = self.list_together(function)
        return self._groups.find_obstacle(function, self._is_own_card, together)

    def list_together(self, function: PciFunction) -> Sequence[str]:
        """Return the addresses that guests get together with a function."""
        return ()

    def traits(self, function: PciFunction) -> tuple[str, ...]:
        """Return the traits of the resource provider of a whole card."""
        return (OWNER_CYBORG, custom_name(self.VENDOR_NAME, function.device))

    def resource_class(self, function: PciFunction) -> str:
        """Return the resource class of a whole card."""
        return str(self._options.get('resource_class') or self.RESOURCE_CLASS)

    def device_type(self, function: PciFunction) -> str:
        """Return the type of the device, as in ``DEVICE_TYPE``."""
        return self.DEVICE_TYPE

    def model_name(self, function: PciFunction) -> str:
        """Return the name of the model, or the ids of an unknown model."""
        name = self.MODELS.get(function.ids) or self.MODELS.get(function.device)
        return name or function.ids

    def vendor_name(self, function: PciFunction) -> str:
        """Return the name of the vendor, which the API shows as driver name."""
        return self.VENDOR_NAME

    def build_handle(self, card: PciFunction, function: PciFunction) -> AttachHandle:
        """Return the attach handle of a function of a card, or of the card itself."""
        address = function.address
        return AttachHandle(address, HandleType.PCI, handle_info(address))

    def read_serial(self, function: PciFunction) -> str | None:
        """Return the serial number or uuid of the card, or None if not readable."""
        return None

    def hardware_id(self, function: PciFunction) -> str:
        """Return the serial number of the card, or its address without one."""
        serial = self.read_serial(function)
        if serial:
            self._serials[function.address, function.ids] = serial
        # Some kernel drivers expose the serial only while bound. The cache keeps the
        # identity of the device while it is bound to vfio-pci.
        return self._serials.get((function.address, function.ids), function.address)

    def describe_virtual(self, function: PciFunction) -> str:
        """Return the reason in the result of a virtual function."""
        return f'virtual function of {function.physfn or "a card being set up"}'

    def build_lost(self, function: PciFunction, reason: str) -> DiscoveryResult:
        """Return the result for a card that does not respond.

        The card keeps its provider, with the whole inventory reserved.
        """
        root = self.build_whole(function)
        device = self.build_device(function, replace(root, reserved=root.total))
        device = replace(device, health=Health.FAILED, health_reason=reason)
        return self.build_result(function, reason, device)

    def build_withheld(
        self, function: PciFunction, reason: str, health: Health = Health.OK
    ) -> DiscoveryResult:
        """Return the result for a card that is reported but not offered."""
        device = self.build_device(function, Deployable(self.root_name(function)))
        device = replace(device, health=health, health_reason=reason)
        return self.build_result(function, reason, device)

    def build_result(
        self, function: PciFunction, reason: str, device: Device | None = None
    ) -> DiscoveryResult:
        """Return a result of this driver; without a device nothing is reported."""
        return DiscoveryResult(
            address=function.address,
            ids=function.ids,
            pci_class=function.pci_class,
            driver=self.NAME,
            reason=reason,
            device=device,
        )

    def build_device(self, function: PciFunction, root: Deployable) -> Device:
        """Return the device of a card.

        The board info contains constant values only. A kernel driver or a link speed
        changes with the guest, and each change causes a report to the conductor.
        """
        board = {'product_id': function.device, 'class': function.pci_class}
        if function.subsystem:
            board['subsystem'] = function.subsystem
        if function.numa_node is not None:
            board['numa_node'] = str(function.numa_node)
        if function.bridges:
            board[BRIDGES_KEY] = format_bridges(function.bridges)
        return Device(
            type=self.device_type(function),
            vendor=function.vendor,
            model=self.model_name(function),
            driver=self.vendor_name(function),
            control_address=function.address,
            hardware_id=self.hardware_id(function),
            root=_add_attributes(root, self._complete_attributes(function)),
            std_board_info=board,
        )

    def list_attributes(self, function: PciFunction) -> Iterator[TypedAttribute]:
        """Yield the typed attributes of each deployable of a card that has units."""
        if function.numa_node is not None:
            yield typed_attributes.NUMA_NODE.of(function.numa_node)
        # The kernel reads the config space, which would wake up a suspended card.
        if not function.is_suspended:
            match = _LINK_SPEED.match(function.text('max_link_speed') or '')
            if match:
                rate = int(match[1]) * 1000 + int(match[2] or 0) * 100
                yield typed_attributes.LINK_SPEED.of(rate)

    def _complete_attributes(self, function: PciFunction) -> list[TypedAttribute]:
        """Return the attributes of a card, some of them as last read, by name."""
        attributes = {item.name: item for item in self.list_attributes(function)}
        for attribute in attributes.values():
            self._keep_attribute(function, attribute)
        values = self._kept_attributes.get(function.address, {})
        return [item for _, item in sorted((values | attributes).items())]

    def _keep_attribute(self, function: PciFunction, item: TypedAttribute) -> None:
        if item.name in _KEPT_NAMES:
            values = self._kept_attributes.setdefault(function.address, {})
            values[item.name] = item

    def build_whole(self, function: PciFunction) -> Deployable:
        """Return the deployable of a card that is offered as one attach handle."""
        resource_class, traits = self.resource_class(function), self.traits(function)
        return Deployable(
            name=self.root_name(function),
            resource_class=resource_class,
            traits=traits,
            total=1,
            handles=(self.build_handle(function, function),),
            attributes=attributes(resource_class, traits),
        )

    def root_name(self, function: PciFunction) -> str:
        """Return the name of the root deployable and of its resource provider."""
        return f'{self._host.name}_{function.address}'

    def read_usage(self, device: Device) -> Usage:
        """Return the telemetry that sysfs has for every PCI function."""
        return telemetry.read_usage(PciFunction(self._host, device.control_address))

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

    def _is_own_card(self, function: PciFunction) -> bool:
        return self.is_own_vendor(function) and self.is_card_function(function)

    def _find_driver_obstacle(self, function: PciFunction) -> str | None:
        if not function.has_host_driver or not self.HOST_DRIVERS:
            return None
        if function.driver in self.HOST_DRIVERS:
            return None
        return f'in use by the host: bound to {function.driver}'

    def _find_reset_obstacle(self, function: PciFunction) -> str | None:
        if function.is_resettable or self._options['offer_without_reset']:
            return None
        return 'the kernel cannot reset it between two guests'

    def describe_offer(self, function: PciFunction) -> str:
        """Return the reason in the result of a whole card that is offered."""
        companions = [
            f'beside {sibling.address} ({name_companion(sibling)})'
            for sibling in function.siblings
            if self.is_own_vendor(sibling) and not self.is_card_function(sibling)
        ]
        return ', '.join(['whole card', *companions])


def attributes(resource_class: str, traits: Sequence[str]) -> dict[str, str]:
    """Return the attributes in which clients of Cyborg look for class and traits."""
    numbered = {f'trait{number}': trait for number, trait in enumerate(traits)}
    return {'rc': resource_class, **numbered}


def _add_attributes(
    deployable: Deployable, attributes: Sequence[TypedAttribute]
) -> Deployable:
    """Return the deployable and its children with further typed attributes.

    The own attributes of a deployable take precedence.
    """
    children = tuple(
        _add_attributes(child, attributes) for child in deployable.children
    )
    if deployable.resource_class is None:
        return replace(deployable, children=children)
    own = {attribute.name for attribute in deployable.typed_attributes}
    host_attributes = (
        attribute for attribute in attributes if attribute.name not in own
    )
    return replace(
        deployable,
        children=children,
        typed_attributes=(*deployable.typed_attributes, *host_attributes),
    )


def name_companion(function: PciFunction) -> str:
    """Return the kind of a function beside a card, such as audio."""
    return _COMPANIONS.get(function.pci_class[:4], 'other')
