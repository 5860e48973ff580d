# SPDX-License-Identifier: Apache-2.0
"""The loading of an image by hand, as whoever asked for it follows it."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final


class ProgramState(enum.StrEnum):
    """The words that clients read."""

    RUNNING = 'running'
    DONE = 'done'
    FAILED = 'failed'


class ProgramStep(enum.StrEnum):
    """What was begun last."""

    ACCEPTED = 'accepted'
    CHECKING = 'checking'
    """The image is looked at once more."""
    LOADING = 'loading'
    """The host fetches the image and loads it."""
    LOADED = 'loaded'


_PROGRESS: Final[Mapping[ProgramStep, int]] = {
    ProgramStep.ACCEPTED: 0,
    ProgramStep.CHECKING: 10,
    ProgramStep.LOADING: 25,
    ProgramStep.LOADED: 100,
}


@dataclass(frozen=True, slots=True)
class ProgramJob:
    """It outlives the job itself by a day."""

    uuid: str
    deployable_uuid: str
    image_uuid: str
    state: ProgramState
    step: ProgramStep
    reason: str  # why it failed, or waits; empty: neither
    created_at: datetime
    updated_at: datetime | None = None

    @property
    def progress(self) -> int:
        """Percent, by the steps: how far a tool has come nobody can see."""
        return _PROGRESS[self.step]
