# SPDX-License-Identifier: Apache-2.0
"""PCI cards that are shared as SR-IOV virtual functions, for any type of device."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Final

from oslo_config import cfg, types

from cyborg_lite.drivers.base import Options
from cyborg_lite.drivers.host import vfio
from cyborg_lite.drivers.host.kernel import CHANGE_TIMEOUT, Writer
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.host.virtual_functions import SysfsSriov, VirtualFunctions
from cyborg_lite.drivers.pci import card_rules
from cyborg_lite.drivers.pci.driver import PciDriver, PreparingPciDriver
from cyborg_lite.drivers.pci.functions import handle_address
from cyborg_lite.drivers.prepared_handles import PreparedHandles
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Deployable,
    Device,
    DiscoveryResult,
    Health,
)

VIRTUAL_FUNCTIONS_OPTION: Final = cfg.ListOpt(
    'virtual_functions',
    default=[],
    item_type=types.String(regex=r'^[^=\s]+\s*=\s*\d+$'),
    help="""
Number of virtual functions of cards, as `card = number` pairs; the first pair
that matches a card applies. `card` is the PCI address of the card or its ids
as in 8086:56c0; `*` matches any text. The agent creates the virtual functions
when the first instance needs one, and removes them after the last. A card
that already has virtual functions is shared by these. A card without virtual
functions that no pair matches is offered as a whole, except QAT cards.
""",
)
_AT_START: Final = cfg.BoolOpt(
    'virtual_functions_at_start',
    default=False,
    help="""
Create the virtual functions that `virtual_functions` configures at the start of
the agent, and keep them. By default they exist only while an instance uses one.
Turn it on for cards whose virtual functions take long to create, or that other
programs of the host configure.
""",
)


class SharedOffer:
    """Offers the existing or configured virtual functions of cards."""

    def __init__(
        self, cards: 'SharedPciDriver', host: Host, virtual: VirtualFunctions
    ) -> None:
        self._cards = cards
        self._host = host
        self._virtual = virtual

    def classify_card(self, card: PciFunction) -> DiscoveryResult | None:
        addresses = self.list_addresses(card)
        if addresses:
            return self._build_shared(card, addresses)
        count = self._cards.virtual_count(card)
        if count and not card.has_guest_driver:
            reason = f'it cannot have {count} virtual functions'
            return self._cards.build_withheld(card, reason)
        if self._cards.OFFERS_WHOLE:
            return None
        return self._cards.build_withheld(card, 'it has no virtual functions')

    def classify_lost(self, card: PciFunction, reason: str) -> DiscoveryResult | None:
        handles = [*self._list_handles(card, self.list_addresses(card))]
        if handles:
            root = self._build_root(card, handles)
            return self._cards.build_reserved(card, root, reason)
        if self._cards.OFFERS_WHOLE:
            return None
        return self._cards.build_withheld(card, reason, Health.FAILED)

    def describe_virtual(self, function: PciFunction) -> str:
        return self._cards.find_obstacle(function) or 'free, or attached to a guest'

    def list_addresses(self, card: PciFunction) -> tuple[str, ...]:
        """Return the virtual functions that a card has or may get; empty: none."""
        if card.virtfns or card.has_guest_driver:
            return card.virtfns
        count = self._cards.virtual_count(card)
        if count > (card.number('sriov_totalvfs') or 0):
            return ()
        return self._virtual.list_addresses(card, count)

    def _build_shared(
        self, card: PciFunction, addresses: Iterable[str]
    ) -> DiscoveryResult:
        handles = [*self._list_handles(card, addresses)]
        if not handles:
            reason = 'none of its virtual functions can be passed through'
            return self._cards.build_withheld(card, reason)
        device = self._cards.build_device(card, self._build_root(card, handles))
        reason = f'{len(handles)} virtual functions'
        used = sum(handle.in_use for handle in handles)
        if used:
            reason = f'{reason}, {used} in use by the host'
        return self._cards.build_result(card, reason, device)

    def _build_root(
        self, card: PciFunction, handles: Sequence[AttachHandle]
    ) -> Deployable:
        traits = self._cards.shared_traits(card)
        return self._cards.build_root(
            card, traits, handles, self._cards.shared_class(card)
        )

    def _list_handles(
        self, card: PciFunction, addresses: Iterable[str]
    ) -> Iterator[AttachHandle]:
        on_demand = self._cards.virtual_count(card) > 0
        for address in addresses:
            virtual = PciFunction(self._host, address)
            in_use = False
            if virtual.is_present:
                if self._cards.find_passthrough_obstacle(virtual) is not None:
                    continue
                in_use = self._cards.find_host_user(virtual) is not None
            handle = self._cards.build_handle(card, virtual)
            yield replace(handle, needs_host=on_demand, in_use=in_use)


class SharedHandles:
    """Creates virtual functions for their first user, removes them after the last."""

    def __init__(
        self, host: Host, writer: Writer, virtual: VirtualFunctions, *, keeps: bool
    ) -> None:
        self._host = host
        self._writer = writer
        self._virtual = virtual
        self._keeps = keeps  # True: virtual functions stay after their last user
        self._prepared = PreparedHandles()

    def restore_handles(self, handles: Iterable[AllocatedHandle]) -> None:
        self._prepared.add(handles)

    def prepare(self, handle: AllocatedHandle) -> None:
        """Create the virtual functions of the card, unless they exist."""
        if self._is_whole(handle):
            return
        self._writer.check(handle.control_address)
        card = PciFunction(self._host, handle.control_address)
        self._prepared.add([handle])
        try:
            self._virtual.create(card, handle_address(handle.info))
        except DriverError:
            self._prepared.remove(handle.uuid)
            raise

    def release(self, handle: AllocatedHandle) -> None:
        """Remove the virtual functions of the card after the last handle."""
        if self._is_whole(handle):
            return
        self._writer.check(handle.control_address)
        self._prepared.remove(handle.uuid)
        card = PciFunction(self._host, handle.control_address)
        if self._keeps or self._prepared.has_any_on(card.address):
            return
        if not vfio.has_open_functions(self._writer, card):
            self._virtual.remove(card)

    def is_prepared(self, handle: AllocatedHandle) -> bool:
        return PciFunction(self._host, handle_address(handle.info)).is_present

    def _is_whole(self, handle: AllocatedHandle) -> bool:
        """Return True if the handle is a physical function, not a virtual one."""
        function = PciFunction(self._host, handle_address(handle.info))
        return function.is_present and not function.is_virtual


class SharedPciDriver(PreparingPciDriver):
    """Offers a card as a whole, or its existing or configured virtual functions.

    A driver of any SR-IOV device overrides what differs: ``shared_traits`` and
    ``shared_class``, ``build_handle`` for the info of handles, ``find_host_user`` for
    what makes a virtual function busy, and ``find_fault`` for the health of a card.
    """

    OFFERS_WHOLE: ClassVar[bool] = True  # False: only virtual functions are offered
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        *PciDriver.OPTIONS,
        VIRTUAL_FUNCTIONS_OPTION,
        _AT_START,
        CHANGE_TIMEOUT,
    )

    def __init__(self, host: Host, options: Options) -> None:
        super().__init__(host, options)
        self._rules = card_rules.parse_rules(options.get('virtual_functions', ()))
        switch = SysfsSriov(self._writer, self.virtual_count)
        self._virtual = VirtualFunctions(host, switch)
        self._at_start = bool(options.get('virtual_functions_at_start'))
        self.offer = self._shared = SharedOffer(self, host, self._virtual)
        self.handles = SharedHandles(
            host, self._writer, self._virtual, keeps=self._at_start
        )

    def prepare_device(self, device: Device) -> bool:
        """Create the virtual functions of a card, if they exist from the start on."""
        card = PciFunction(self._host, device.control_address)
        if not self._at_start or card.virtfns:
            return False
        addresses = self._shared.list_addresses(card)
        # A card that is out of order is tried again when it works.
        if not addresses or card.is_lost or self.find_fault(card) is not None:
            return False
        self._writer.check(card.address)
        self._virtual.create(card, addresses[0])
        return True

    def virtual_count(self, card: PciFunction) -> int:
        """Return the configured number of virtual functions; 0: none are created."""
        values = card_rules.find_values(self._rules, card.address, card.ids)
        return int(values[0]) if values else 0
