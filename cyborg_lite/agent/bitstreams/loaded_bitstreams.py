# SPDX-License-Identifier: Apache-2.0
"""Stores which bitstream each region contains, as far as the hardware cannot show it.

A region whose loading failed is not offered, even after a restart of the agent, until a
bitstream is loaded into it. Functions in the topology of an image are reported as
children of the region while the region contains the function of the image.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cyborg_lite.agent.bitstreams import layout_functions
from cyborg_lite.agent.state.state_file import StateFile
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.bitstreams import function_layout as topology
from cyborg_lite.model.bitstreams.bitstreams import Bitstream
from cyborg_lite.model.inventory.host_report import (
    Deployable,
    Device,
    DiscoveryResult,
    Health,
)
from cyborg_lite.model.limits import REASON_MAX_LENGTH


@dataclass(frozen=True, slots=True)
class _Entry:
    function_id: str = ''
    topology: str | None = None
    trouble: str = ''  # why the region cannot be used; empty if it can


class LoadedBitstreams:
    """Bitstreams by deployable name, in memory and in ``loaded.json``.

    If the file cannot be written, the state is kept in memory and an error is logged.
    """

    def __init__(self, directory: Path, host: Host | None = None) -> None:
        self._file = StateFile(directory / 'loaded.json', dict[str, _Entry])
        # Host of the functions of topologies; None: they have no addresses.
        self._host = host
        self._guard = threading.Lock()
        self._entries: dict[str, _Entry] | None = None  # None: not read yet

    def record_loaded(self, deployable: str, bitstream: Bitstream) -> None:
        """Record that a bitstream was loaded into a region."""
        entry = _Entry(bitstream.function_id, bitstream.topology)
        self._store(deployable, entry)

    def record_failure(self, deployable: str, reason: str) -> None:
        """Record that loading into a region failed, so that it is not offered."""
        self._store(deployable, _Entry(trouble=reason[:REASON_MAX_LENGTH]))

    def remove_regions(self, card: str) -> None:
        """Remove the regions of a card, which a new shell has reset.

        :param card: prefix of the deployable names of the regions
        """
        with self._guard:
            entries = self._read()
            for name in [name for name in entries if name.startswith(card)]:
                del entries[name]
            self._file.write(entries)

    def amend(self, result: DiscoveryResult) -> DiscoveryResult:
        """Add the stored failures and topologies to a discovery result."""
        device = result.device
        with self._guard:
            entries = dict(self._read())
        if device is None or not entries:
            return result
        return replace(result, device=self._amend_device(device, entries))

    def _amend_device(self, device: Device, entries: Mapping[str, _Entry]) -> Device:
        reasons = [
            entries[deployable.name].trouble
            for deployable in device.root.walk()
            if deployable.name in entries and entries[deployable.name].trouble
        ]
        root = self._amend_deployable(device, device.root, entries, reasons)
        if reasons and device.health is Health.OK:
            device = replace(device, health=Health.DEGRADED, health_reason=reasons[0])
        return replace(device, root=root)

    def _amend_deployable(
        self,
        device: Device,
        deployable: Deployable,
        entries: Mapping[str, _Entry],
        reasons: list[str],
    ) -> Deployable:
        """Return a deployable with its failure or topology.

        :param reasons: why the device is degraded; functions that are missing are added
        """
        children = tuple(
            self._amend_deployable(device, child, entries, reasons)
            for child in deployable.children
        )
        deployable = replace(deployable, children=children)
        entry = entries.get(deployable.name)
        if entry is None:
            return deployable
        if entry.trouble:
            return replace(deployable, reserved=deployable.total)
        function_id = deployable.attributes.get(bitstreams.FUNCTION, '')
        described = entry.topology if function_id == entry.function_id else None
        if not described or topology.list_topology_faults(described):
            return deployable
        functions = topology.build_deployables(deployable.name, described)
        if self._host is not None:
            address = device.control_address
            located = layout_functions.locate_functions(self._host, address, functions)
            reasons += located.missing
            functions = located.deployables
            deployable = layout_functions.select_guest_function(
                self._host, deployable, address, located
            )
        return replace(deployable, children=(*children, *functions))

    def _store(self, deployable: str, entry: _Entry) -> None:
        with self._guard:
            entries = self._read()
            entries[deployable] = entry
            self._file.write(entries)

    def _read(self) -> dict[str, _Entry]:
        if self._entries is None:
            self._entries = self._file.read() or {}
        return self._entries
