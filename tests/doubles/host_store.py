# SPDX-License-Identifier: Apache-2.0
"""Inventory of a host, in memory instead of database rows."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from cyborg_lite.model.inventory.diff import (
    Delta,
    InventoryChanges,
    diff_leftovers,
    diff_report,
)
from cyborg_lite.model.inventory.facts import Layout, LeafPath, StoredInventory
from cyborg_lite.model.inventory.host_report import HostReport

Path = TypeVar('Path')
Facts = TypeVar('Facts')


class StoredHost:
    """Inventory that follows host reports. A handle path is (identity, name, key)."""

    def __init__(self) -> None:
        self.inventory = StoredInventory(Layout({}, {}, {}, {}), {}, frozenset())

    @property
    def layout(self) -> Layout:
        return self.inventory.layout

    def report(self, reported: HostReport) -> InventoryChanges:
        changes = diff_report(self.inventory, reported)
        self._apply(changes)
        return changes

    def remove_leftovers(self) -> InventoryChanges:
        changes = diff_leftovers(self.inventory)
        self._apply(changes)
        return changes

    def claim(self, *paths: LeafPath) -> None:
        """Assign exactly these handles to ARQs."""
        assert set(paths) <= self.layout.handles.keys()
        self._set(self.layout, frozenset(paths))

    def release(self) -> None:
        """Release all handles and delete the missing ones."""
        handles = {p: f for p, f in self.layout.handles.items() if not f.missing}
        layout = self.layout
        remaining = Layout(
            layout.devices, layout.deployables, handles, layout.attributes
        )
        self._set(remaining, frozenset())

    def _set(self, layout: Layout, claimed: Iterable[LeafPath]) -> None:
        self.inventory = StoredInventory(
            layout, self.inventory.names, frozenset(claimed)
        )

    def _apply(self, changes: InventoryChanges) -> None:
        devices = _apply_delta(self.layout.devices, changes.devices)
        parts = _apply_delta(self.layout.deployables, changes.deployables)
        handles = _apply_delta(self.layout.handles, changes.handles)
        attributes = _apply_delta(self.layout.attributes, changes.attributes)
        names = {**self.inventory.names, **changes.names}
        # A path is derived from the row, so it follows a changed hardware id.
        now = {identity: facts.hardware_id for identity, facts in devices.items()}
        layout = Layout(
            devices={facts.hardware_id: facts for facts in devices.values()},
            deployables={(now[i], part): facts for (i, part), facts in parts.items()},
            handles={(now[i], part, f.key): f for (i, part, _), f in handles.items()},
            attributes={(now[i], p, k): v for (i, p, k), v in attributes.items()},
        )
        claimed = {
            (now[path[0]], path[1], handles[path].key)
            for path in self.inventory.claimed
        }
        self.inventory = StoredInventory(
            layout,
            {(now[i], part): names[i, part] for i, part in parts},
            frozenset(claimed),
        )


def _apply_delta(
    stored: Mapping[Path, Facts], delta: Delta[Path, Facts]
) -> dict[Path, Facts]:
    remaining = {
        path: facts for path, facts in stored.items() if path not in delta.removed
    }
    return {**remaining, **delta.changed, **delta.new}
