# SPDX-License-Identifier: Apache-2.0
"""Stores the state that the agent needs at its start, before the conductor answers.

``findings.json`` contains the last discovery results. ``handles.json`` contains the
attach handles of ARQs, each with the id of the host boot for which it is prepared.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cyborg_lite.agent.state.state_file import StateFile
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import DiscoveryResult


@dataclass(frozen=True, slots=True)
class PreparedHandle:
    """An attach handle that is prepared on this host, or is about to be prepared."""

    handle: AllocatedHandle
    boot_id: str | None = None  # host boot it is prepared for; None: not yet prepared
    serial: str = ''  # of the card; empty: unknown, or the card has none
    group: tuple[str, ...] = ()  # uuids of the members of its active group


class Cache:
    """Discovery results and prepared handles, in memory and on disk.

    The class is thread-safe. If a file cannot be written, the state is kept in memory
    and an error is logged.
    """

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        """Store the paths. Call ``open`` to read the files.

        :param read_only: never change the files, which another process owns
        """
        results, handles = directory / 'findings.json', directory / 'handles.json'
        self._results_file = StateFile(
            results, list[DiscoveryResult], read_only=read_only
        )
        self._handles_file = StateFile(
            handles, list[PreparedHandle], read_only=read_only
        )
        self._guard = threading.Lock()
        self._handles: Mapping[str, PreparedHandle] = {}  # by uuid; never modified
        self._results: Sequence[DiscoveryResult] | None = None  # None: never saved

    def open(self) -> None:
        """Read the state that an earlier process saved."""
        with self._guard:
            entries = self._handles_file.read() or ()
            self._handles = {entry.handle.uuid: entry for entry in entries}
            self._results = self._results_file.read()

    # --- discovery results ---

    @property
    def results(self) -> Sequence[DiscoveryResult] | None:
        """Saved results of reported devices; None if the host was never scanned."""
        return self._results

    def save_results(self, results: Iterable[DiscoveryResult]) -> None:
        """Save the results with a device, if they differ from the saved results."""
        reported = [result for result in results if result.device is not None]
        with self._guard:
            if reported == self._results:
                return
            self._results = reported
            self._results_file.write(reported)

    # --- prepared handles ---

    @property
    def handles(self) -> Mapping[str, PreparedHandle]:
        """Snapshot of the prepared handles, by uuid."""
        return self._handles

    def add_handles(self, handles: Iterable[AllocatedHandle]) -> None:
        """Record that the handles are about to be prepared.

        After a crash, objects of these handles on the host belong to this service. A
        handle that is prepared already for the same claim stays marked as prepared.
        """
        added = {handle.uuid: handle for handle in handles}

        def add(before: Mapping[str, PreparedHandle]) -> dict[str, PreparedHandle]:
            updated = {}
            for uuid, handle in added.items():
                entry = before.get(uuid, PreparedHandle(handle))
                boot_id = entry.boot_id if entry.handle.claim == handle.claim else None
                updated[uuid] = replace(entry, handle=handle, boot_id=boot_id)
            return {**before, **updated}

        self._change(add)

    def mark_prepared(self, uuids: Iterable[str], boot_id: str) -> None:
        """Mark the handles as prepared for the given boot id."""
        marked = frozenset(uuids)
        self._change(
            lambda before: {
                uuid: replace(entry, boot_id=boot_id) if uuid in marked else entry
                for uuid, entry in before.items()
            }
        )

    def convert_handles(
        self, convert: Callable[[PreparedHandle], PreparedHandle]
    ) -> None:
        """Replace each stored handle by the result of a function."""
        self._change(lambda before: {u: convert(entry) for u, entry in before.items()})

    def remove_handles(self, uuids: Iterable[str]) -> None:
        """Remove handles of which no object is left on the host."""
        removed = frozenset(uuids)
        self._change(
            lambda before: {u: entry for u, entry in before.items() if u not in removed}
        )

    def _change(
        self,
        change: Callable[[Mapping[str, PreparedHandle]], Mapping[str, PreparedHandle]],
    ) -> None:
        with self._guard:
            after = change(self._handles)
            if after == self._handles:
                return
            self._handles = after
            self._handles_file.write(list(after.values()))
