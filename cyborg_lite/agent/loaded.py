# SPDX-License-Identifier: Apache-2.0
"""What was loaded on this host, where the hardware alone does not tell enough.

A region whose loading failed stays closed, over restarts of the agent, until something
is loaded into it. The functions that an image describes are shown below the region for
as long as its function is there.
"""

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from oslo_log import log

from cyborg_lite.model import bitstreams, topology
from cyborg_lite.model.bitstreams import Bitstream
from cyborg_lite.model.inventory import Deployable, Device, Finding, Health

LOG = log.getLogger(__name__)

_FILE: Final = 'loaded.json'
_LONGEST_REASON: Final = 255


@dataclass(frozen=True, slots=True)
class _Entry:
    function_id: str = ''
    topology: str | None = None
    trouble: str = ''  # why the region cannot be used; empty: it can


class LoadedRegions:
    """By name of the deployable. Kept in a file, and in memory should that fail."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._guard = threading.Lock()
        self._entries: dict[str, _Entry] | None = None  # None: not read yet

    def loaded(self, deployable: str, bitstream: Bitstream) -> None:
        entry = _Entry(bitstream.function_id, bitstream.topology)
        self._keep(deployable, entry)

    def failed(self, deployable: str, reason: str) -> None:
        self._keep(deployable, _Entry(trouble=reason[:_LONGEST_REASON]))

    def emptied(self, card: str) -> None:
        """A new shell has reset the regions of the card of that name."""
        with self._guard:
            entries = self._read()
            for name in [one for one in entries if one.startswith(card)]:
                del entries[name]
            self._write(entries)

    def amended(self, finding: Finding) -> Finding:
        """The finding of a driver, with what we know beside it."""
        device = finding.device
        with self._guard:
            entries = dict(self._read())
        if device is None or not entries:
            return finding
        return replace(finding, device=self._amended_device(device, entries))

    def _amended_device(self, device: Device, entries: Mapping[str, _Entry]) -> Device:
        troubles = [
            entries[each.name].trouble
            for each in device.root.walk()
            if each.name in entries and entries[each.name].trouble
        ]
        if troubles and device.health is Health.OK:
            device = replace(device, health=Health.DEGRADED, health_reason=troubles[0])
        return replace(device, root=_amended(device.root, entries))

    def _keep(self, deployable: str, entry: _Entry) -> None:
        with self._guard:
            entries = self._read()
            entries[deployable] = entry
            self._write(entries)

    def _write(self, entries: Mapping[str, _Entry]) -> None:
        text = json.dumps({name: asdict(each) for name, each in entries.items()})
        part = self._directory / f'{_FILE}.part'
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            part.write_text(text)
            os.replace(part, self._directory / _FILE)
        except OSError as error:
            LOG.error('What was loaded is not kept: %s', error)

    def _read(self) -> dict[str, _Entry]:
        if self._entries is None:
            try:
                said = json.loads((self._directory / _FILE).read_text())
                self._entries = {name: _entry(each) for name, each in said.items()}
            except FileNotFoundError:
                self._entries = {}
            except (OSError, ValueError, TypeError, AttributeError) as error:
                LOG.error('What was loaded before cannot be read: %s', error)
                self._entries = {}
        return self._entries


# Any: JSON of our own making, unless somebody had a hand in it.
def _entry(said: Mapping[str, Any]) -> _Entry:
    described = said.get('topology')
    return _Entry(
        str(said.get('function_id', '')),
        described if isinstance(described, str) else None,
        str(said.get('trouble', '')),
    )


def _amended(deployable: Deployable, entries: Mapping[str, _Entry]) -> Deployable:
    parts = tuple(_amended(part, entries) for part in deployable.parts)
    deployable = replace(deployable, parts=parts)
    entry = entries.get(deployable.name)
    if entry is None:
        return deployable
    if entry.trouble:
        return replace(deployable, reserved=deployable.total)
    there = deployable.attributes.get(bitstreams.FUNCTION, '')
    described = entry.topology if there == entry.function_id else None
    if not described or topology.faults(described):
        return deployable
    return replace(
        deployable, parts=(*parts, *topology.parts(deployable.name, described))
    )
