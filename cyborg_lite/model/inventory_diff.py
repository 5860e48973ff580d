# SPDX-License-Identifier: Apache-2.0
"""The smallest change that makes what we know of a host what its agent reports.

A unit that a request holds stays until the request lets it go, and so does what it is
part of: marked, and closed to others. So does what its device is offered as: a card is
whole or cut up, and never both. All else follows the report.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from cyborg_lite.model.identities import identified
from cyborg_lite.model.inventory import Health, HostReport
from cyborg_lite.model.inventory_facts import (
    ROOT,
    DeviceFacts,
    Known,
    Layout,
    LeafPath,
    PartFacts,
    PartPath,
    UnitFacts,
    laid_out,
    name_of,
)
from cyborg_lite.model.moved_units import former_keys

Path = TypeVar('Path')
Facts = TypeVar('Facts')


@dataclass(frozen=True, slots=True)
class Delta(Generic[Path, Facts]):
    """What to insert, to update, and to delete."""

    new: Mapping[Path, Facts]
    changed: Mapping[Path, Facts]
    gone: frozenset[Path]

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.gone)

    def __str__(self) -> str:
        return f'+{len(self.new)} ~{len(self.changed)} -{len(self.gone)}'


@dataclass(frozen=True, slots=True)
class Changes:
    devices: Delta[str, DeviceFacts]
    parts: Delta[PartPath, PartFacts]
    units: Delta[LeafPath, UnitFacts]
    attributes: Delta[LeafPath, str]
    names: Mapping[PartPath, str]  # of the parts that are new or changed
    concern_placement: bool

    def __bool__(self) -> bool:
        return bool(self.devices or self.parts or self.units or self.attributes)


def changes(known: Known, report: HostReport) -> Changes:
    """From what we know to what is reported."""
    devices = identified(known.layout.devices, report.devices)
    seen = _in_place(known.layout, laid_out(devices))
    roots = {identity: device.root.name for identity, (device, _) in devices.items()}
    return _between(known, _with_held(known, seen), roots)


def leftovers(known: Known) -> Changes:
    """Without a report: drop what is gone and was only kept for a request."""
    layout = known.layout
    there = {
        identity
        for identity, facts in layout.devices.items()
        if facts.health is not Health.GONE
    }
    seen = Layout(
        devices={path: layout.devices[path] for path in there},
        parts={p: f for p, f in layout.parts.items() if p[0] in there},
        units={p: f for p, f in layout.units.items() if p[0] in there},
        attributes={p: f for p, f in layout.attributes.items() if p[0] in there},
    )
    return _between(known, _with_held(known, seen), {})


def _in_place(known: Layout, seen: Layout) -> Layout:
    """The units of a card that moved, under the paths that they have had."""
    moved = {
        identity
        for identity, facts in seen.devices.items()
        if identity in known.devices
        and known.devices[identity].address != facts.address
    }
    if not moved:
        return seen
    units = {p: f for p, f in seen.units.items() if p[0] not in moved}
    for part in (path for path in seen.parts if path[0] in moved):
        old, new = _units(known, part), _units(seen, part)
        formerly = former_keys(
            {key: unit.missing for key, unit in old.items()},
            known.devices[part[0]].address,
            new,
            seen.devices[part[0]].address,
        )
        units.update(
            ((*part, formerly.get(key, key)), unit) for key, unit in new.items()
        )
    return replace(seen, units=units)


def _units(layout: Layout, part: PartPath) -> dict[str, UnitFacts]:
    return {path[2]: unit for path, unit in layout.units.items() if path[:2] == part}


def _with_held(known: Known, seen: Layout) -> Layout:
    """What is seen, and what must stay although it is not."""
    seen = _without_changes_of_class(known, seen)
    lost = known.held - seen.units.keys()
    if not lost:
        return seen
    layout = known.layout
    parts = {
        part: replace(layout.parts[part], reserved=layout.parts[part].total)
        for part in _with_parents(layout, {path[:2] for path in lost})
        # A part that offers nothing now may still have a server's unit to account for.
        if part not in seen.parts or seen.parts[part].resource_class is None
    }
    reason = 'The host does not have it any more; a server still holds a part of it.'
    devices = {
        path[0]: replace(
            layout.devices[path[0]], health=Health.GONE, health_reason=reason
        )
        for path in lost
        if path[0] not in seen.devices
    }
    units = {path: replace(layout.units[path], missing=True) for path in lost}
    attributes = {p: v for p, v in layout.attributes.items() if p[:2] in parts}
    return Layout(
        devices={**seen.devices, **devices},
        parts={**seen.parts, **parts},
        units={**seen.units, **units},
        attributes={**seen.attributes, **attributes},
    )


def _without_changes_of_class(known: Known, seen: Layout) -> Layout:
    """Without what devices would offer instead of what requests hold of them."""
    before = known.layout
    refused: dict[str, str] = {}  # why, by identity
    for identity in {path[0] for path in known.held} & seen.devices.keys():
        new = _classes(seen, identity) - _classes(before, identity)
        held = [path[:2] for path in known.held if path[0] == identity]
        old = {before.parts[part].resource_class for part in held}
        if new and not all(_keeps_class(before, seen, part) for part in held):
            refused[identity] = (
                f'The change to {_listed(new)} is refused while {len(held)} of '
                f'{_listed(old)} are in use'
            )
    devices = {i: replace(seen.devices[i], health_reason=w) for i, w in refused.items()}
    return Layout(
        devices={**seen.devices, **devices},
        parts={p: f for p, f in seen.parts.items() if p[0] not in refused},
        units={p: f for p, f in seen.units.items() if p[0] not in refused},
        attributes={p: v for p, v in seen.attributes.items() if p[0] not in refused},
    )


def _keeps_class(before: Layout, after: Layout, part: PartPath) -> bool:
    then, now = before.parts[part], after.parts.get(part)
    return now is not None and now.resource_class == then.resource_class


def _classes(layout: Layout, identity: str) -> set[str | None]:
    """Under which a device can be scheduled."""
    found = {f.resource_class for p, f in layout.parts.items() if p[0] == identity}
    return found - {None}


def _listed(classes: Iterable[str | None]) -> str:
    return ' and '.join(sorted(filter(None, classes)))


def _with_parents(layout: Layout, parts: Iterable[PartPath]) -> set[PartPath]:
    found: set[PartPath] = set()
    for identity, part in parts:
        above: str | None = part
        while above is not None:
            found.add((identity, above))
            above = layout.parts[identity, above].parent
    return found


def _between(known: Known, wanted: Layout, roots: Mapping[str, str]) -> Changes:
    """``roots``: by identity the names that their drivers give to root deployables."""
    layout = known.layout
    parts = _delta(layout.parts, wanted.parts)
    return Changes(
        devices=_delta(layout.devices, wanted.devices),
        parts=parts,
        units=_delta(layout.units, wanted.units),
        attributes=_delta(layout.attributes, wanted.attributes),
        names=_names(known, parts, roots),
        concern_placement=_shown(layout) != _shown(wanted),
    )


def _shown(layout: Layout) -> tuple[object, ...]:
    """All that the providers of a host are made of."""
    parts = {
        path: (part.resource_class, part.traits, part.total, part.reserved)
        for path, part in layout.parts.items()
    }
    units = {path: (unit.in_use, unit.missing) for path, unit in layout.units.items()}
    healths = {path: device.health for path, device in layout.devices.items()}
    return parts, units, healths


def _names(
    known: Known, parts: Delta[PartPath, PartFacts], roots: Mapping[str, str]
) -> dict[PartPath, str]:
    """A name is given once: a card that moved keeps its own, and with it its provider.

    Another card that takes its slot has to be called by something else.
    """
    taken = {name for path, name in known.names.items() if path not in parts.gone}
    names = {path: known.names[path] for path in parts.changed}
    for identity, part in parts.new:
        root = names.get((identity, ROOT)) or known.names.get((identity, ROOT))
        name = name_of(part, root or roots[identity])
        names[identity, part] = _free_name(name, identity, taken)
        taken.add(names[identity, part])
    return names


def _free_name(name: str, salt: str, taken: Collection[str]) -> str:
    free = name
    while free in taken:
        salt = hashlib.sha256(salt.encode()).hexdigest()
        free = f'{name}_{salt[:8]}'
    return free


def _delta(
    known: Mapping[Path, Facts], wanted: Mapping[Path, Facts]
) -> Delta[Path, Facts]:
    return Delta(
        new={path: wanted[path] for path in wanted if path not in known},
        changed={
            path: facts
            for path, facts in wanted.items()
            if path in known and known[path] != facts
        },
        gone=frozenset(known.keys() - wanted.keys()),
    )
