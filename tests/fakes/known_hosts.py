# SPDX-License-Identifier: Apache-2.0
"""What is known of a host, kept in memory as the database keeps it in rows."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from cyborg_lite.model.inventory import HostReport
from cyborg_lite.model.inventory_diff import Changes, Delta, changes, leftovers
from cyborg_lite.model.inventory_facts import Known, Layout, LeafPath

Path = TypeVar('Path')
Facts = TypeVar('Facts')


class KnownHost:
    """Follows reports. Units are named by path: identity, part, key."""

    def __init__(self) -> None:
        self.known = Known(Layout({}, {}, {}, {}), {}, frozenset())

    @property
    def layout(self) -> Layout:
        return self.known.layout

    def report(self, reported: HostReport) -> Changes:
        found = changes(self.known, reported)
        self._apply(found)
        return found

    def forget_leftovers(self) -> Changes:
        found = leftovers(self.known)
        self._apply(found)
        return found

    def hold(self, *paths: LeafPath) -> None:
        """These units and no others belong to requests from now on."""
        assert set(paths) <= self.layout.units.keys()
        self._set(self.layout, frozenset(paths))

    def release(self) -> None:
        """Requests let everything go; what is missing goes at once."""
        units = {p: f for p, f in self.layout.units.items() if not f.missing}
        layout = self.layout
        left = Layout(layout.devices, layout.parts, units, layout.attributes)
        self._set(left, frozenset())

    def _set(self, layout: Layout, held: Iterable[LeafPath]) -> None:
        self.known = Known(layout, self.known.names, frozenset(held))

    def _apply(self, found: Changes) -> None:
        devices = _applied(self.layout.devices, found.devices)
        parts = _applied(self.layout.parts, found.parts)
        units = _applied(self.layout.units, found.units)
        attributes = _applied(self.layout.attributes, found.attributes)
        names = {**self.known.names, **found.names}
        # A path is read off the row, so it follows what the row says.
        now = {identity: facts.hardware_id for identity, facts in devices.items()}
        layout = Layout(
            devices={facts.hardware_id: facts for facts in devices.values()},
            parts={(now[i], part): facts for (i, part), facts in parts.items()},
            units={(now[i], part, f.key): f for (i, part, _), f in units.items()},
            attributes={(now[i], p, k): v for (i, p, k), v in attributes.items()},
        )
        held = {(now[path[0]], path[1], units[path].key) for path in self.known.held}
        self.known = Known(
            layout,
            {(now[i], part): names[i, part] for i, part in parts},
            frozenset(held),
        )


def _applied(
    known: Mapping[Path, Facts], delta: Delta[Path, Facts]
) -> dict[Path, Facts]:
    left = {path: facts for path, facts in known.items() if path not in delta.gone}
    return {**left, **delta.changed, **delta.new}
