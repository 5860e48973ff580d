# SPDX-License-Identifier: Apache-2.0
"""Whole PCI functions given to guests: the scan that vendor drivers share.

A vendor's driver derives from ``PciDriver`` and states facts; it overrides a method
only where its hardware is odd.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers import figures
from cyborg_lite.drivers.passthrough import group_obstacle
from cyborg_lite.drivers.sysfs import Host, PciFunction
from cyborg_lite.model.inventory import (
    Deployable,
    Device,
    Finding,
    HandleType,
    Health,
    Unit,
)
from cyborg_lite.model.usage import Usage

OWNER: Final = 'OWNER_CYBORG'
_LONGEST_NAME: Final = 255  # characters, in Placement

# Of functions that share a card with the one that computes, by class. PCI Code and ID
# Assignment Specification.
_COMPANIONS: Final = {'0403': 'audio', '0c03': 'USB', '0c80': 'USB-C'}


def custom_name(*parts: str) -> str:
    """A trait or class that Placement accepts, from whatever the hardware says.

    >>> custom_name('NVIDIA', '1eb8')
    'CUSTOM_NVIDIA_1EB8'
    """
    text = re.sub('[^A-Z0-9_]', '_', '_'.join(parts).upper())
    return f'CUSTOM_{text.removeprefix("CUSTOM_")}'[:_LONGEST_NAME]


def handle_address(info: Mapping[str, str]) -> str:
    """The inverse of ``handle_info``; empty where the info names no function."""
    try:
        return '{domain}:{bus}:{device}.{function}'.format_map(info)
    except KeyError:
        return ''


def handle_info(address: str) -> dict[str, str]:
    """An address in the form that Nova reads."""
    domain, bus, rest = address.split(':')
    device, function = rest.split('.')
    return {'domain': domain, 'bus': bus, 'device': device, 'function': function}


class PciDriver:
    """Offers each card of a vendor as a whole."""

    NAME: ClassVar[str]
    VENDOR: ClassVar[str]  # four hex digits
    VENDOR_NAME: ClassVar[str]  # in traits, and as the driver's name in the API
    CLASSES: ClassVar[tuple[str, ...]]  # how the class codes of its cards begin
    DEVICE_TYPE: ClassVar[str]  # GPU, FPGA, AICHIP, QAT, NIC, SSD, PCI
    RESOURCE_CLASS: ClassVar[str]
    MODELS: ClassVar[Mapping[str, str]] = {}  # device id -> label, for people only
    # Drivers of the host that let go of a card when a guest wants it; none: any does.
    HOST_DRIVERS: ClassVar[tuple[str, ...]] = ()

    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        cfg.BoolOpt(
            'offer_without_reset',
            default=False,
            help="""
Offer cards that the kernel cannot reset. What one guest left in such a card
may be read by the next one. Turn it on where all guests trust one another.
""",
        ),
    )

    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self._host = host
        self._options = options
        self._serials: dict[str, str] = {}  # by address, as last read

    def discover(self) -> Iterator[Finding]:
        present = {function.address for function in self._host.pci_functions()}
        for address in self._serials.keys() - present:
            del self._serials[address]
        for function in self._host.pci_functions():
            finding = self.judge(function)
            if finding is not None:
                yield finding

    def judge(self, function: PciFunction) -> Finding | None:
        """The verdict; None: the function is none of this driver's business."""
        if function.vendor != self.VENDOR:
            return None
        if not self.claims(function):
            return self._judge_companion(function)
        if function.virtual:
            return self.finding(function, self.virtual_state(function))
        if function.lost:
            return self.lost(function, 'lost: its config space reads all ones')
        if function.boot_vga:
            return self.withheld(function, 'boot VGA of the host')
        return self.judge_card(function)

    def judge_card(self, function: PciFunction) -> Finding:
        """The verdict on a card that answers and is not the console of the host."""
        obstacle = self.obstacle(function)
        if obstacle is not None:
            return self.withheld(function, obstacle)
        return self.finding(
            function, self._offer(function), self.device(function, self.whole(function))
        )

    def claims(self, function: PciFunction) -> bool:
        """Whether a function of this vendor is a card, or a part of one."""
        return function.pci_class.startswith(self.CLASSES)

    def obstacle(self, function: PciFunction) -> str | None:
        """Why the card cannot be given to a guest as a whole; None: it can."""
        return (
            group_obstacle(function, self._is_card)
            or self._driver_obstacle(function)
            or self._reset_obstacle(function)
        )

    def traits(self, function: PciFunction) -> tuple[str, ...]:
        return (OWNER, custom_name(self.VENDOR_NAME, function.device))

    def serial(self, function: PciFunction) -> str | None:
        """What stays with the card when it is moved; None: it does not say."""
        return None

    def hardware_id(self, function: PciFunction) -> str:
        """Its serial, where it ever said it, else where it is."""
        said = self.serial(function)
        if said:
            self._serials[function.address] = said
        # Many a driver says it only of cards that it holds itself; while a guest has
        # the card, it is still the one that it was.
        return self._serials.get(function.address, function.address)

    def virtual_state(self, function: PciFunction) -> str:
        """What a virtual function is; its card says whether it is offered."""
        return f'virtual function of {function.physfn or "a card being set up"}'

    def lost(self, function: PciFunction, reason: str) -> Finding:
        """A card that is there and does not answer: it keeps its place, reserved."""
        whole = self.whole(function)
        device = self.device(function, replace(whole, reserved=whole.total))
        device = replace(device, health=Health.FAILED, health_reason=reason)
        return self.finding(function, reason, device)

    def withheld(
        self, function: PciFunction, reason: str, health: Health = Health.OK
    ) -> Finding:
        """A card that nobody can be given: known to the service, with the reason."""
        device = self.device(function, Deployable(self.name_of(function)))
        device = replace(device, health=health, health_reason=reason)
        return self.finding(function, reason, device)

    def finding(
        self, function: PciFunction, reason: str, device: Device | None = None
    ) -> Finding:
        return Finding(
            address=function.address,
            ids=function.ids,
            pci_class=function.pci_class,
            driver=self.NAME,
            reason=reason,
            device=device,
        )

    def device(self, function: PciFunction, root: Deployable) -> Device:
        # Only what stays as it is: a bound driver or a link speed comes and goes with
        # the guest, and each change of this record is a report to the conductor.
        board = {'product_id': function.device, 'class': function.pci_class}
        if function.subsystem:
            board['subsystem'] = function.subsystem
        if function.numa_node is not None:
            board['numa_node'] = str(function.numa_node)
        return Device(
            type=self.DEVICE_TYPE,
            vendor=self.VENDOR,
            model=self.MODELS.get(function.device, function.ids),
            driver=self.VENDOR_NAME,
            address=function.address,
            hardware_id=self.hardware_id(function),
            root=root,
            std_board_info=board,
        )

    def whole(self, function: PciFunction) -> Deployable:
        """The card as the one unit that it is."""
        address = function.address
        return Deployable(
            name=self.name_of(function),
            resource_class=self.RESOURCE_CLASS,
            traits=self.traits(function),
            total=1,
            units=(Unit(address, HandleType.PCI, handle_info(address)),),
            attributes=attributes(self.RESOURCE_CLASS, self.traits(function)),
        )

    def name_of(self, function: PciFunction) -> str:
        """Of the root deployable, and of its provider in Placement."""
        return f'{self._host.name}_{function.address}'

    def usage(self, device: Device) -> Usage:
        """Health and what the kernel says of any PCI function."""
        return figures.of_function(PciFunction(self._host, device.address))

    def _judge_companion(self, function: PciFunction) -> Finding | None:
        for sibling in function.siblings:
            if self.claims(sibling) and not sibling.virtual:
                what = _companion(function)
                return self.finding(function, f'{what} function of {sibling.address}')
        return None

    def _is_card(self, other: PciFunction) -> bool:
        return other.vendor == self.VENDOR and self.claims(other)

    def _driver_obstacle(self, function: PciFunction) -> str | None:
        held = function.driver is not None and not function.guest_driver
        if not held or not self.HOST_DRIVERS or function.driver in self.HOST_DRIVERS:
            return None
        return f'in use by something that is not us: bound to {function.driver}'

    def _reset_obstacle(self, function: PciFunction) -> str | None:
        if function.resettable or self._options['offer_without_reset']:
            return None
        return 'the kernel cannot reset it between two guests'

    def _offer(self, function: PciFunction) -> str:
        companions = [
            f'{sibling.address} ({_companion(sibling)})'
            for sibling in function.siblings
            if sibling.vendor == self.VENDOR and not self.claims(sibling)
        ]
        return ', '.join(['whole card', *(f'beside {each}' for each in companions)])


def attributes(resource_class: str, traits: Sequence[str]) -> dict[str, str]:
    """As clients of Cyborg find class and traits among the attributes."""
    numbered = {f'trait{number}': trait for number, trait in enumerate(traits)}
    return {'rc': resource_class, **numbered}


def _companion(function: PciFunction) -> str:
    return _COMPANIONS.get(function.pci_class[:4], 'other')
