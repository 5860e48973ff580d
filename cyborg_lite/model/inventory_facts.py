# SPDX-License-Identifier: Apache-2.0
"""The inventory of a host laid out flat: each thing under the path that names it.

A path begins with the identity of the device. Then comes the part, the empty string
for the root: what the name of a deployable adds to the name of its root. Then, for a
unit or an attribute, its key. Paths of what stays in place never change.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from cyborg_lite.model.attribute_keys import shown_attributes
from cyborg_lite.model.inventory import (
    Deployable,
    Device,
    HandleType,
    Health,
    Unit,
)

ROOT: Final = ''
_LONGEST_REASON: Final = 255

PartPath: TypeAlias = tuple[str, str]
LeafPath: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    type: str
    vendor: str
    model: str
    driver: str
    address: str
    hardware_id: str
    std_board_info: Mapping[str, str]
    vendor_board_info: str | None
    health: Health
    health_reason: str


@dataclass(frozen=True, slots=True)
class PartFacts:
    parent: str | None  # part; None: the root
    resource_class: str | None
    traits: tuple[str, ...]
    total: int
    reserved: int
    driver_name: str


@dataclass(frozen=True, slots=True)
class UnitFacts:
    key: str
    type: HandleType
    info: Mapping[str, str]
    needs_host: bool
    managed: bool
    in_use: bool
    missing: bool = False  # held by a request, and not on the host any more


@dataclass(frozen=True, slots=True)
class Layout:
    devices: Mapping[str, DeviceFacts]
    parts: Mapping[PartPath, PartFacts]
    units: Mapping[LeafPath, UnitFacts]
    attributes: Mapping[LeafPath, str]


@dataclass(frozen=True, slots=True)
class Known:
    """What the database holds of a host."""

    layout: Layout
    names: Mapping[PartPath, str]  # of deployables
    held: frozenset[LeafPath]  # units that requests own


def device_facts(device: Device, hardware_id: str) -> DeviceFacts:
    return DeviceFacts(
        type=device.type,
        vendor=device.vendor,
        model=device.model,
        driver=device.driver,
        address=device.address,
        hardware_id=hardware_id,
        std_board_info=device.std_board_info,
        vendor_board_info=device.vendor_board_info,
        health=device.health,
        health_reason=device.health_reason[:_LONGEST_REASON],
    )


def product(card: Device | DeviceFacts) -> str:
    """Two cards that differ in it are never the same card.

    By its number where there is one: the model is a label, which may be reworded.
    """
    return f'{card.vendor}:{card.std_board_info.get("product_id", card.model)}'


def part_of(name: str, root_name: str) -> str:
    """The part that a deployable is, by its name and that of its root."""
    if name == root_name:
        return ROOT
    return name.removeprefix(root_name) if name.startswith(f'{root_name}_') else name


def name_of(part: str, root_name: str) -> str:
    """The inverse of ``part_of``."""
    return f'{root_name}{part}' if part == ROOT or part.startswith('_') else part


def parts_of(device: Device) -> Iterator[tuple[str, PartFacts, Deployable]]:
    """All deployables of a device, parents first."""

    def walk(
        each: Deployable, parent: str | None
    ) -> Iterator[tuple[str, PartFacts, Deployable]]:
        own = part_of(each.name, device.root.name)
        facts = PartFacts(
            parent=parent,
            resource_class=each.resource_class,
            traits=each.traits,
            total=each.total,
            reserved=each.reserved,
            driver_name=device.driver,
        )
        yield own, facts, each
        for below in each.parts:
            yield from walk(below, own)

    return walk(device.root, None)


def unit_facts(unit: Unit) -> UnitFacts:
    return UnitFacts(
        key=unit.key,
        type=unit.type,
        info=unit.info,
        needs_host=unit.needs_host,
        managed=unit.managed,
        in_use=unit.in_use,
    )


def laid_out(devices: Mapping[str, tuple[Device, str]]) -> Layout:
    """By identity: each device and the hardware id to keep of it."""
    parts: dict[PartPath, PartFacts] = {}
    units: dict[LeafPath, UnitFacts] = {}
    attributes: dict[LeafPath, str] = {}
    for identity, (device, _) in devices.items():
        for part, facts, deployable in parts_of(device):
            parts[identity, part] = facts
            for unit in deployable.units:
                units[identity, part, unit.key] = unit_facts(unit)
            for key, value in shown_attributes(deployable).items():
                attributes[identity, part, key] = value
    facts_by_identity = {
        identity: device_facts(device, hardware_id)
        for identity, (device, hardware_id) in devices.items()
    }
    return Layout(facts_by_identity, parts, units, attributes)
