# SPDX-License-Identifier: Apache-2.0
"""What the agent must know when it starts and nobody can be asked.

Two files: what the drivers last found, and the handles that guests were given, each
with the boot of the host for which it is ready.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from cyborg_lite.agent.state_file import StateFile
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Finding
from cyborg_lite.rpc import wire

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Kept:
    """A handle that is prepared on this host, or was about to be."""

    handle: HeldHandle
    boot_id: str | None = None  # for which it is ready; None: it may not be at all


class Cache:
    """Threads may share it. What cannot be written is kept in memory, and logged."""

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        """:param read_only: it is another process's; nothing of it is changed"""
        findings, handles = directory / 'findings.json', directory / 'handles.json'
        self._findings_file = StateFile(findings, _VERSION, read_only=read_only)
        self._handles_file = StateFile(handles, _VERSION, read_only=read_only)
        self._guard = threading.Lock()
        self._handles: Mapping[str, Kept] = {}  # by uuid; replaced, never changed
        self._findings: Sequence[Finding] | None = None  # None: none were ever kept

    def open(self) -> None:
        """Read what an earlier process kept."""
        with self._guard:
            self._handles = self._handles_file.read(_handles) or {}
            self._findings = self._findings_file.read(_findings)

    # --- what was found ---

    @property
    def findings(self) -> Sequence[Finding] | None:
        """Of devices that were reported; None: this host never looked before."""
        return self._findings

    def keep_findings(self, findings: Iterable[Finding]) -> None:
        """Only written where it is another one than before."""
        wanted = [each for each in findings if each.device is not None]
        with self._guard:
            if wanted == self._findings:
                return
            self._findings = wanted
            self._findings_file.write(wire.dump(wanted))

    # --- what was prepared ---

    @property
    def kept(self) -> Mapping[str, Kept]:
        """Handles by uuid, as they are at this moment."""
        return self._handles

    def intend(self, handles: Iterable[HeldHandle]) -> None:
        """About to prepare them: whatever is found of them later is ours.

        One that is ready stays so.
        """
        new = {handle.uuid: handle for handle in handles}

        def with_new(before: Mapping[str, Kept]) -> dict[str, Kept]:
            known = {
                uuid: replace(before[uuid], handle=handle)
                if uuid in before
                else Kept(handle)
                for uuid, handle in new.items()
            }
            return {**before, **known}

        self._change(with_new)

    def ready(self, uuids: Iterable[str], boot_id: str) -> None:
        """They are what a guest needs, until the host boots again."""
        wanted = frozenset(uuids)
        self._change(
            lambda before: {
                uuid: replace(kept, boot_id=boot_id) if uuid in wanted else kept
                for uuid, kept in before.items()
            }
        )

    def forget(self, uuids: Iterable[str]) -> None:
        """Nothing of them is left on the host."""
        gone = frozenset(uuids)
        self._change(
            lambda before: {u: kept for u, kept in before.items() if u not in gone}
        )

    def _change(
        self, change: Callable[[Mapping[str, Kept]], Mapping[str, Kept]]
    ) -> None:
        with self._guard:
            after = change(self._handles)
            if after == self._handles:
                return
            self._handles = after
            self._handles_file.write(wire.dump(list(after.values())))


# Any: JSON that was read from a file.
def _handles(said: Any) -> dict[str, Kept]:
    return {kept.handle.uuid: kept for kept in wire.load_all(Kept, said)}


def _findings(said: Any) -> list[Finding]:
    return list(wire.load_all(Finding, said))
