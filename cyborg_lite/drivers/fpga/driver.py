# SPDX-License-Identifier: Apache-2.0
"""FPGA cards as trees of deployables: card, regions, functions.

The root deployable is the card. If guests get one function of the card, the root is
scheduled, and its children describe the regions and functions. If guests get several
regions separately, each region is scheduled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.drivers.pci.cards import cleaning_option
from cyborg_lite.drivers.pci.driver import PciDriver
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.devices.cleaning import LOGIC_STEP, CleanStep
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    CleaningPolicy,
    Deployable,
    DiscoveryResult,
    Health,
)

BLANK: Final = CleanStep('blank', 'the logic of the last instance', seconds=60)
# Without a blank bitstream: the bitstream of the next ARQ replaces the logic.
MARK: Final = CleanStep(LOGIC_STEP, 'the record of what the region contains')
FPGA_OPTIONS: Final[Sequence[cfg.Opt]] = (
    *(option for option in PciDriver.OPTIONS if option.dest != 'cleaning'),
    cleaning_option(CleaningPolicy.AFTER_USE),
)


@dataclass(frozen=True, slots=True)
class FpgaRegion:
    """A reconfigurable region of a card, as read from the hardware."""

    name: str  # `region0`; the same at every scan
    interface_id: str = ''  # of bitstreams that fit: 32 hex digits; empty: unknown
    function_id: str = ''  # of the loaded bitstream; empty: none or unknown
    fault: str = ''  # why the region cannot be used; empty: it can
    vf_address: str | None = None  # VF that contains the region; None: the PF does


@dataclass(frozen=True, slots=True)
class FpgaCard:
    """A card with its regions, as read from the hardware."""

    function: PciFunction  # the managing function
    guest_address: str | None  # function for guests, unless regions are separate
    regions: tuple[FpgaRegion, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)  # attributes, by key
    fault: str = ''  # why the card cannot be used; empty: it can
    in_use: bool = False  # by a process that this service does not manage

    @property
    def has_separate_regions(self) -> bool:
        """Guests get the regions of the card separately."""
        return len(self.regions) > 1 and any(item.vf_address for item in self.regions)

    @property
    def guest_addresses(self) -> tuple[str, ...]:
        """The addresses of all functions that guests can get."""
        if self.has_separate_regions:
            return tuple(item.vf_address for item in self.regions if item.vf_address)
        return (self.guest_address,) if self.guest_address else ()


class FpgaDriver(PciDriver):
    """Offers FPGA cards with the bitstreams that are loaded."""

    CLASSES: ClassVar[tuple[str, ...]] = ('1200',)
    DEVICE_TYPE: ClassVar[str] = 'FPGA'
    TRAIT_PREFIX: ClassVar[str] = 'FPGA'
    RESOURCE_CLASS: ClassVar[str] = 'FPGA'
    LOADS: ClassVar[bool] = False  # True: a bind may load a bitstream
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = FPGA_OPTIONS

    def read_card(self, function: PciFunction) -> FpgaCard:
        """Read the card that a function manages."""
        return FpgaCard(function, function.address)

    def find_card_obstacle(self, card: FpgaCard) -> str | None:
        """Return why no guest may have the function of a card, or None."""
        return None

    def describe_handlers(self, card: FpgaCard) -> Mapping[str, str]:
        """Return attributes that name the image formats and drivers of a card."""
        return {}

    def region_traits(self, region: FpgaRegion) -> tuple[str, ...]:
        """Return the traits that the content of a region adds."""
        return ()

    def classify_card(self, function: PciFunction) -> DiscoveryResult:
        card = self.read_card(function)
        forbidden = self.find_card_obstacle(card)
        if forbidden is not None:
            return self.build_withheld(function, forbidden)
        for address in card.guest_addresses:
            obstacle = self.find_obstacle(PciFunction(self._host, address))
            if obstacle is not None:
                return self.build_withheld(function, obstacle)
        faults = [region.fault for region in card.regions if region.fault]
        health, cause = Health.OK, ''
        if card.fault:
            health, cause = Health.FAILED, card.fault
        elif faults:
            health, cause = Health.DEGRADED, faults[-1]
        device = self.build_device(function, self.build_tree(card), health, cause)
        reason = card.fault or f'given to guests as {", ".join(card.guest_addresses)}'
        return self.build_result(function, reason, device)

    def list_clean_steps(self, handle: AllocatedHandle) -> Sequence[CleanStep]:
        """Return the steps; the first one removes the logic of the last instance."""
        steps = super().list_clean_steps(handle)
        obstacle = self.find_blank_obstacle()
        if not obstacle:
            return BLANK, *steps
        if self.LOADS:
            return (MARK,)
        reason = f'{obstacle}, so the next instance would get the logic of the last one'
        raise DriverError(reason=f'{reason}.')

    def find_blank_obstacle(self) -> str:
        """Return why no bitstream without logic can be loaded; empty: one can."""
        return f'{self.NAME} loads no bitstreams'

    def build_whole(self, function: PciFunction) -> Deployable:
        return self.build_tree(self.read_card(function))

    def build_tree(self, card: FpgaCard) -> Deployable:
        """Return the root deployable of a card with its regions as children."""
        name = self.root_name(card.function)
        children = tuple(
            self._build_region(card, name, region) for region in card.regions
        )
        if card.has_separate_regions:
            return Deployable(name=name, attributes=card.facts, children=children)
        root = self._build_offered(card, name, card.guest_address, card.regions[:1])
        # The regions are shown but not scheduled.
        regions = (
            Deployable(c.name, attributes=c.attributes, children=c.children)
            for c in children
        )
        return replace(root, children=tuple(regions))

    def _build_region(
        self, card: FpgaCard, parent: str, region: FpgaRegion
    ) -> Deployable:
        name = f'{parent}_{region.name}'
        deployable = self._build_offered(card, name, region.vf_address, (region,))
        if region.vf_address is None:
            return deployable
        number = card.function.virtfns.index(region.vf_address)
        attributes = {'address': region.vf_address}
        function = Deployable(f'{name}_vf{number}', attributes=attributes)
        return replace(deployable, children=(function,))

    def _build_offered(
        self,
        card: FpgaCard,
        name: str,
        address: str | None,
        regions: Sequence[FpgaRegion],
    ) -> Deployable:
        traits = self.traits(card.function)
        attributes = {**card.facts, **self.describe_handlers(card)}
        for region in regions:
            traits += self.region_traits(region)
            attributes[bitstreams.REGION] = region.interface_id
            attributes[bitstreams.FUNCTION] = region.function_id
        handles: tuple[AttachHandle, ...] = ()
        if address is not None:
            handle = self.build_handle(card.function, PciFunction(self._host, address))
            needs_host, in_use = self.LOADS, card.in_use
            handles = (replace(handle, needs_host=needs_host, in_use=in_use),)
        total = len(handles)
        is_faulty = card.fault or any(region.fault for region in regions)
        return Deployable(
            name=name,
            resource_class=self.RESOURCE_CLASS,
            traits=traits,
            total=total,
            reserved=total if is_faulty else 0,
            handles=handles,
            attributes={key: value for key, value in attributes.items() if value},
        )


def restore_card(function: PciFunction, root: Deployable) -> FpgaCard:
    """Return the card that ``FpgaDriver.build_tree`` made a root deployable of.

    The result lacks what deployables do not contain, such as addresses.
    """
    facts = dict(root.attributes)
    for key in (bitstreams.REGION, bitstreams.FUNCTION):
        facts.pop(key, None)
    regions = tuple(
        FpgaRegion(
            child.name.removeprefix(f'{root.name}_'),
            interface_id=child.attributes.get(bitstreams.REGION, ''),
            function_id=child.attributes.get(bitstreams.FUNCTION, ''),
        )
        for child in root.children
    )
    return FpgaCard(function, None, regions, facts)
