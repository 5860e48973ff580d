# SPDX-License-Identifier: Apache-2.0
"""The file that shows whether the handles of instances exist since the host's boot."""

from dataclasses import dataclass
from pathlib import Path

from cyborg_lite.agent.state.state_file import StateFile


@dataclass(frozen=True, slots=True)
class _Content:
    boot_id: str


class Readiness:
    """The last boot of the host for which the agent rebuilt the handles."""

    def __init__(self, directory: Path, *, read_only: bool = False) -> None:
        # directory: of the state of the agent.
        path = directory / 'ready.json'
        # read_only: another process owns the file.
        self._file = StateFile(path, _Content, read_only=read_only)

    def record(self, boot_id: str) -> None:
        """Store that the handles are rebuilt for a boot of the host."""
        self._file.write(_Content(boot_id))

    def is_ready(self, boot_id: str) -> bool:
        """Check whether the handles are rebuilt for a boot of the host."""
        return bool(boot_id) and self._file.read() == _Content(boot_id)
