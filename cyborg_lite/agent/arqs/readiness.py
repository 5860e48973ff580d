# SPDX-License-Identifier: Apache-2.0
"""The file that shows whether the handles of instances exist since the host's boot."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cyborg_lite.agent.state.state_file import StateFile

_FILE: Final = 'ready.json'  # in the directory of the state of the agent


@dataclass(frozen=True, slots=True)
class _Content:
    boot_id: str


def record_rebuilt(directory: Path, boot_id: str) -> None:
    """Store that the handles are rebuilt for a boot of the host."""
    StateFile(directory / _FILE, _Content).write(_Content(boot_id))


def are_rebuilt(directory: Path, boot_id: str) -> bool:
    """Check whether the handles are rebuilt for a boot of the host."""
    file = StateFile(directory / _FILE, _Content, read_only=True)
    return bool(boot_id) and file.read() == _Content(boot_id)
