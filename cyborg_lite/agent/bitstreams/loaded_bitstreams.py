# SPDX-License-Identifier: Apache-2.0
"""Stores which bitstream each region contains, as far as the hardware cannot show it.

A region whose loading failed is not offered, even after a restart of the agent, until a
bitstream is loaded into it. Functions in the topology of an image are reported as
children of the region while the region contains the function of the image.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from cyborg_lite.agent.state.state_file import StateFile
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.pci.functions import handle_address, handle_info
from cyborg_lite.model.bitstreams import bitstreams, function_layout
from cyborg_lite.model.bitstreams import function_layout as topology
from cyborg_lite.model.bitstreams.bitstreams import Bitstream
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Deployable,
    Device,
    DiscoveryResult,
    HandleType,
    Health,
)
from cyborg_lite.model.limits import REASON_MAX_LENGTH


@dataclass(frozen=True, slots=True)
class LocatedTopology:
    """Deployables of the functions of a bitstream, and functions that are missing."""

    deployables: tuple[Deployable, ...]
    missing: tuple[str, ...] = ()  # one sentence each


def locate_functions(
    host: Host, control_address: str, functions: tuple[Deployable, ...]
) -> LocatedTopology:
    """Add the attribute ``address`` to the functions that exist on the host.

    ``pci_offset`` counts from function 0 of the slot of the card. Any user may upload
    an image. So an address is used only if the host has the function after the load.

    :param control_address: of the card
    """
    missing: list[str] = []
    located = tuple(
        _locate_function(host, control_address, function, missing)
        for function in functions
    )
    return LocatedTopology(located, tuple(missing))


def _locate_function(
    host: Host, control_address: str, item: Deployable, missing: list[str]
) -> Deployable:
    children = tuple(
        _locate_function(host, control_address, child, missing)
        for child in item.children
    )
    address = function_layout.find_function_address(control_address, item.attributes)
    if address is None:
        return replace(item, children=children)
    if not PciFunction(host, address).is_present:
        name = item.name.rpartition('_')[0].rpartition('_')[2]
        number = item.name.rpartition('_')[2]
        missing.append(f'The host has no function {address} ({name}_{number}).')
        return replace(item, children=children)
    attributes = {**item.attributes, 'address': address}
    return replace(item, attributes=attributes, children=children)


def select_guest_function(
    host: Host, region: Deployable, control_address: str, located: LocatedTopology
) -> Deployable:
    """Return a region whose attach handle is the only function of its bitstream.

    The handle stays as the driver reports it if the bitstream has several functions,
    or if a guest must not have the function.
    """
    addresses = [*_list_addresses(located.deployables)]
    if len(addresses) != 1 or len(region.handles) != 1 or located.missing:
        return region
    (handle,), (address,) = region.handles, addresses
    if not _is_safe(host, handle, control_address, address):
        return region
    info = {**handle.info, **handle_info(address)}
    return replace(region, handles=(replace(handle, info=info),))


def _list_addresses(functions: tuple[Deployable, ...]) -> Iterator[str]:
    for function in functions:
        for item in function.walk():
            if 'address' in item.attributes:
                yield item.attributes['address']


def _is_safe(
    host: Host, handle: AttachHandle, control_address: str, address: str
) -> bool:
    """Check that a guest may have a function instead of the one of the driver.

    It is no management function, is of the same vendor, is alone in its IOMMU group
    and can be reset.
    """
    if handle.type is not HandleType.PCI or address == control_address:
        return False
    function = PciFunction(host, address)
    current = PciFunction(host, handle_address(handle.info))
    return (
        function.vendor == current.vendor
        and function.group_members == (address,)
        and function.is_resettable
    )


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
            located = locate_functions(self._host, address, functions)
            reasons += located.missing
            functions = located.deployables
            deployable = select_guest_function(self._host, deployable, address, located)
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
