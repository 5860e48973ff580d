# SPDX-License-Identifier: Apache-2.0
"""Smallest change of the stored inventory of a host that matches its report.

An attach handle that an ARQ owns stays until the ARQ releases it, and an unclean one
until it is clean. Their deployables and devices stay, too. Such objects are marked as
missing and closed to other ARQs. The resource classes of the device also stay, because
a card is either undivided or divided. All other objects follow the report.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from cyborg_lite.model.inventory.facts import (
    ROOT,
    DeployableFacts,
    DeployablePath,
    HandleFacts,
    Layout,
    LeafPath,
    StoredInventory,
    build_layout,
    deployable_name,
)
from cyborg_lite.model.inventory.host_report import (
    Device,
    HandleType,
    Health,
    HostReport,
)
from cyborg_lite.model.inventory.identities import find_former_keys, match_devices

_ADDRESS_FIELDS: Final = ('domain', 'bus', 'device', 'function')

Path = TypeVar('Path')
Facts = TypeVar('Facts')


@dataclass(frozen=True, slots=True)
class Delta(Generic[Path, Facts]):
    """Rows of one table to insert, to update and to delete."""

    new: Mapping[Path, Facts]
    changed: Mapping[Path, Facts]
    removed: frozenset[Path]

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.removed)

    def __str__(self) -> str:
        return f'+{len(self.new)} ~{len(self.changed)} -{len(self.removed)}'


@dataclass(frozen=True, slots=True)
class InventoryChanges:
    """Changes of all tables of the inventory."""

    devices: Delta[str, Device]
    deployables: Delta[DeployablePath, DeployableFacts]
    handles: Delta[LeafPath, HandleFacts]
    attributes: Delta[LeafPath, str]
    names: Mapping[DeployablePath, str]  # of new and changed deployables
    concern_placement: bool  # True: the providers of the host change

    def __bool__(self) -> bool:
        return bool(self.devices or self.deployables or self.handles or self.attributes)


def diff_report(stored: StoredInventory, report: HostReport) -> InventoryChanges:
    """Return the changes from the stored inventory to a report."""
    devices = match_devices(stored.layout.devices, report.devices)
    reported = _keep_moved_paths(stored.layout, build_layout(devices))
    roots = {identity: device.root.name for identity, (device, _) in devices.items()}
    return _diff_layouts(stored, _keep_claimed(stored, reported), roots)


def diff_leftovers(stored: StoredInventory) -> InventoryChanges:
    """Return the changes that remove missing objects which no ARQ owns any more."""
    layout = stored.layout
    present = {
        identity
        for identity, facts in layout.devices.items()
        if facts.health is not Health.GONE
    }
    remaining = _keep_claimed(stored, layout.select(present))
    return _diff_layouts(stored, remaining, {})


def _keep_moved_paths(stored: Layout, reported: Layout) -> Layout:
    """Return the report with the former paths of the handles of moved cards."""
    moved = {
        identity
        for identity, facts in reported.devices.items()
        if identity in stored.devices
        and stored.devices[identity].control_address != facts.control_address
    }
    if not moved:
        return reported
    handles = {p: f for p, f in reported.handles.items() if p[0] not in moved}
    for path in (path for path in reported.deployables if path[0] in moved):
        old, new = _handles_of(stored, path), _handles_of(reported, path)
        former_keys = find_former_keys(
            {key: handle.missing for key, handle in old.items()},
            stored.devices[path[0]].control_address,
            new,
            reported.devices[path[0]].control_address,
        )
        handles.update(
            ((*path, former_keys.get(key, key)), handle) for key, handle in new.items()
        )
    return replace(reported, handles=handles)


def _handles_of(layout: Layout, path: DeployablePath) -> dict[str, HandleFacts]:
    return {
        leaf[2]: handle for leaf, handle in layout.handles.items() if leaf[:2] == path
    }


def _keep_claimed(stored: StoredInventory, reported: Layout) -> Layout:
    """Return the report with the missing objects that ARQs still own."""
    reported = _reject_class_changes(stored, reported)
    missing_paths = stored.claimed - reported.handles.keys()
    if not missing_paths:
        return reported
    layout = stored.layout
    deployables = {
        path: replace(layout.deployables[path], reserved=layout.deployables[path].total)
        for path in _add_parents(layout, {path[:2] for path in missing_paths})
        # Without a resource class it may still have to account for a claimed handle.
        if path not in reported.deployables
        or reported.deployables[path].resource_class is None
    }
    reason = 'The device is missing on the host, but is in use or not clean.'
    devices = {
        path[0]: replace(
            layout.devices[path[0]], health=Health.GONE, health_reason=reason
        )
        for path in missing_paths
        if path[0] not in reported.devices
    }
    handles = {
        path: replace(layout.handles[path], missing=True) for path in missing_paths
    }
    attributes = {p: v for p, v in layout.attributes.items() if p[:2] in deployables}
    reported = _close_used_functions(reported, handles)
    return Layout(
        devices={**reported.devices, **devices},
        deployables={**reported.deployables, **deployables},
        handles={**reported.handles, **handles},
        attributes={**reported.attributes, **attributes},
    )


def _close_used_functions(
    reported: Layout, missing_handles: Mapping[LeafPath, HandleFacts]
) -> Layout:
    """Return the report without free handles for functions that are in use.

    A function can move to another deployable of its device, for example after an import
    from OpenStack Cyborg. Two instances must not get it.

    :param missing_handles: handles with an owner, not reported under their paths
    """
    used = {
        (path[0], _pci_address(handle))
        for path, handle in missing_handles.items()
        if handle.type is HandleType.PCI
    }
    handles = {
        path: replace(handle, in_use=True)
        if handle.type is HandleType.PCI and (path[0], _pci_address(handle)) in used
        else handle
        for path, handle in reported.handles.items()
    }
    return replace(reported, handles=handles)


def _pci_address(handle: HandleFacts) -> tuple[str | None, ...]:
    return tuple(handle.info.get(name) for name in _ADDRESS_FIELDS)


def _reject_class_changes(stored: StoredInventory, reported: Layout) -> Layout:
    """Return the report without devices that would lose a resource class in use."""
    before = stored.layout
    reasons: dict[str, str] = {}  # by identity
    for identity in {path[0] for path in stored.claimed} & reported.devices.keys():
        new = _resource_classes(reported, identity) - _resource_classes(
            before, identity
        )
        claimed = [path[:2] for path in stored.claimed if path[0] == identity]
        old = {before.deployables[path].resource_class for path in claimed}
        if new and not all(_keeps_class(before, reported, path) for path in claimed):
            reasons[identity] = (
                f'The change to {_join_names(new)} is refused while {len(claimed)} of '
                f'{_join_names(old)} are in use'
            )
    devices = {
        identity: replace(reported.devices[identity], health_reason=reason)
        for identity, reason in reasons.items()
    }
    unchanged = reported.select(reported.devices.keys() - reasons)
    return replace(unchanged, devices={**unchanged.devices, **devices})


def _keeps_class(before: Layout, after: Layout, path: DeployablePath) -> bool:
    old, new = before.deployables[path], after.deployables.get(path)
    return new is not None and new.resource_class == old.resource_class


def _resource_classes(layout: Layout, identity: str) -> set[str | None]:
    classes = {
        facts.resource_class
        for path, facts in layout.deployables.items()
        if path[0] == identity
    }
    return classes - {None}


def _join_names(classes: Iterable[str | None]) -> str:
    return ' and '.join(sorted(filter(None, classes)))


def _add_parents(
    layout: Layout, paths: Iterable[DeployablePath]
) -> set[DeployablePath]:
    """Return the paths of deployables and of all their ancestors."""
    result: set[DeployablePath] = set()
    for identity, suffix in paths:
        current: str | None = suffix
        while current is not None:
            result.add((identity, current))
            current = layout.deployables[identity, current].parent
    return result


def _diff_layouts(
    stored: StoredInventory, desired: Layout, roots: Mapping[str, str]
) -> InventoryChanges:
    """Return the changes to a layout.

    :param roots: names of the reported root deployables, by identity
    """
    layout = stored.layout
    attributes = {p: v for p, v in desired.attributes.items() if p not in stored.hidden}
    deployables = _diff(layout.deployables, desired.deployables)
    return InventoryChanges(
        devices=_diff(layout.devices, desired.devices),
        deployables=deployables,
        handles=_diff(layout.handles, desired.handles),
        attributes=_diff(layout.attributes, attributes),
        names=_choose_names(stored, deployables, roots),
        concern_placement=_placement_values(layout) != _placement_values(desired),
    )


def _placement_values(layout: Layout) -> tuple[object, ...]:
    """Return all values that the providers of a host depend on."""
    deployables = {
        path: (
            facts.resource_class,
            facts.traits,
            facts.total,
            facts.reserved,
            facts.typed_attributes,  # selectors compare them
        )
        for path, facts in layout.deployables.items()
    }
    handles = {
        path: (handle.in_use, handle.missing) for path, handle in layout.handles.items()
    }
    healths = {path: device.health for path, device in layout.devices.items()}
    return deployables, handles, healths


def _choose_names(
    stored: StoredInventory,
    deployables: Delta[DeployablePath, DeployableFacts],
    roots: Mapping[str, str],
) -> dict[DeployablePath, str]:
    """Return the names of new and changed deployables.

    A name never changes: a card that moves keeps its names and its providers. Another
    card in its former slot gets other names.
    """
    used = {
        name for path, name in stored.names.items() if path not in deployables.removed
    }
    names = {path: stored.names[path] for path in deployables.changed}
    for identity, suffix in deployables.new:
        root = names.get((identity, ROOT)) or stored.names.get((identity, ROOT))
        name = deployable_name(suffix, root or roots[identity])
        names[identity, suffix] = _find_free_name(name, identity, used)
        used.add(names[identity, suffix])
    return names


def _find_free_name(name: str, salt: str, used: Collection[str]) -> str:
    candidate = name
    while candidate in used:
        salt = hashlib.sha256(salt.encode()).hexdigest()
        candidate = f'{name}_{salt[:8]}'
    return candidate


def _diff(
    stored: Mapping[Path, Facts], desired: Mapping[Path, Facts]
) -> Delta[Path, Facts]:
    return Delta(
        new={path: desired[path] for path in desired if path not in stored},
        changed={
            path: facts
            for path, facts in desired.items()
            if path in stored and stored[path] != facts
        },
        removed=frozenset(stored.keys() - desired.keys()),
    )
