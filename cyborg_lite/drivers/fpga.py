# SPDX-License-Identifier: Apache-2.0
"""What FPGA drivers share: a card as a tree of regions and functions.

The root stands for the card. Where one function of it goes to guests the root is what
is scheduled, under the name it always had; the regions and functions below tell what
it consists of. Where several regions go to guests apart, each is scheduled on its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from cyborg_lite.drivers.pci import OWNER, PciDriver, custom_name, handle_info
from cyborg_lite.drivers.sysfs import PciFunction
from cyborg_lite.model import bitstreams
from cyborg_lite.model.inventory import (
    Deployable,
    Finding,
    HandleType,
    Health,
    Unit,
)


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a card that holds one function, as the hardware shows it now."""

    name: str  # `region0`; the same at every scan
    interface_id: str = ''  # what fits in there: 32 hex digits; empty: not told
    function_id: str = ''  # what is in there; empty: nothing, or not told
    trouble: str = ''  # why nobody can use it
    virtual: str | None = None  # address of the function it is given by; None: card's


@dataclass(frozen=True, slots=True)
class Card:
    """What a driver found out about one card."""

    function: PciFunction  # that manages it
    handed: str | None  # address of what a guest gets, unless regions have their own
    regions: tuple[Region, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)  # attributes of all parts
    trouble: str = ''  # why nobody can use any of it
    in_use: bool = False  # by somebody whom we do not know

    @property
    def apart(self) -> bool:
        """Whether its regions are given to guests one by one."""
        return len(self.regions) > 1 and any(region.virtual for region in self.regions)

    @property
    def given(self) -> tuple[str, ...]:
        """Addresses of the functions that guests get."""
        if self.apart:
            return tuple(region.virtual for region in self.regions if region.virtual)
        return (self.handed,) if self.handed else ()


class FpgaDriver(PciDriver):
    """Cards that are given away with whatever they have been loaded with."""

    CLASSES: ClassVar[tuple[str, ...]] = ('1200',)
    DEVICE_TYPE: ClassVar[str] = 'FPGA'
    RESOURCE_CLASS: ClassVar[str] = 'FPGA'
    LOADS: ClassVar[bool] = False  # whether a bind may want something of the host

    def card(self, function: PciFunction) -> Card:
        """All about the card that the function manages."""
        return Card(function, function.address)

    def traits(self, function: PciFunction) -> tuple[str, ...]:
        product = custom_name('FPGA_PRODUCT_ID', function.device)
        return OWNER, custom_name('FPGA', self.VENDOR_NAME), product

    def region_traits(self, region: Region) -> tuple[str, ...]:
        return ()

    def judge_card(self, function: PciFunction) -> Finding:
        card = self.card(function)
        for address in card.given:
            obstacle = self.obstacle(PciFunction(self._host, address))
            if obstacle is not None:
                return self.withheld(function, obstacle)
        device = self.device(function, self.tree(card))
        if card.trouble:
            device = replace(device, health=Health.FAILED, health_reason=card.trouble)
        for region in card.regions:
            if region.trouble and not card.trouble:
                device = replace(
                    device, health=Health.DEGRADED, health_reason=region.trouble
                )
        reason = card.trouble or f'given to guests as {", ".join(card.given)}'
        return self.finding(function, reason, device)

    def whole(self, function: PciFunction) -> Deployable:
        return self.tree(self.card(function))

    def tree(self, card: Card) -> Deployable:
        """The root, and all that is below it."""
        name = self.name_of(card.function)
        below = tuple(self._region(card, name, region) for region in card.regions)
        if card.apart:
            return Deployable(name=name, attributes=card.facts, parts=below)
        root = self._offered(card, name, card.handed, card.regions[:1])
        return replace(root, parts=tuple(_described(part) for part in below))

    def _region(self, card: Card, above: str, region: Region) -> Deployable:
        name = f'{above}_{region.name}'
        part = self._offered(card, name, region.virtual, (region,))
        if region.virtual is None:
            return part
        number = card.function.virtfns.index(region.virtual)
        shown = {'address': region.virtual}
        return replace(
            part, parts=(Deployable(f'{name}_vf{number}', attributes=shown),)
        )

    def _offered(
        self, card: Card, name: str, handed: str | None, regions: Sequence[Region]
    ) -> Deployable:
        traits = self.traits(card.function)
        attributes = dict(card.facts)
        for region in regions:
            traits += self.region_traits(region)
            attributes[bitstreams.REGION] = region.interface_id
            attributes[bitstreams.FUNCTION] = region.function_id
        total = int(handed is not None)
        unusable = card.trouble or any(region.trouble for region in regions)
        return Deployable(
            name=name,
            resource_class=self.RESOURCE_CLASS,
            traits=traits,
            total=total,
            reserved=total if unusable else 0,
            units=(self._unit(handed, card.in_use),) if handed else (),
            attributes={key: value for key, value in attributes.items() if value},
        )

    def _unit(self, address: str, in_use: bool) -> Unit:
        info = handle_info(address)
        return Unit(address, HandleType.PCI, info, needs_host=self.LOADS, in_use=in_use)


def card_of(function: PciFunction, root: Deployable) -> Card:
    """What ``FpgaDriver.tree`` made the deployables of, as far as they tell."""
    facts = dict(root.attributes)
    for key in (bitstreams.REGION, bitstreams.FUNCTION):
        facts.pop(key, None)
    regions = tuple(
        Region(
            part.name.removeprefix(f'{root.name}_'),
            interface_id=part.attributes.get(bitstreams.REGION, ''),
            function_id=part.attributes.get(bitstreams.FUNCTION, ''),
        )
        for part in root.parts
    )
    return Card(function, None, regions, facts)


def _described(part: Deployable) -> Deployable:
    """The same, only to be looked at: what is above it is what is scheduled."""
    return Deployable(name=part.name, attributes=part.attributes, parts=part.parts)
