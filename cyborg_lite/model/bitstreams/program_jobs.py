# SPDX-License-Identifier: Apache-2.0
"""Programming jobs as shown to the caller that started them."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final


class ProgramState(enum.StrEnum):
    """States of a programming job as clients read them."""

    RUNNING = 'running'
    DONE = 'done'
    FAILED = 'failed'


class ProgramStep(enum.StrEnum):
    """The step that started last."""

    ACCEPTED = 'accepted'
    CHECKING = 'checking'
    """The conductor checks the image again."""
    LOADING = 'loading'
    """The host downloads and loads the image."""
    LOADED = 'loaded'


_PROGRESS: Final[Mapping[ProgramStep, int]] = {
    ProgramStep.ACCEPTED: 0,
    ProgramStep.CHECKING: 10,
    ProgramStep.LOADING: 25,
    ProgramStep.LOADED: 100,
}


@dataclass(frozen=True, slots=True)
class ProgramJob:
    """A programming job. It is shown until one day after the job has ended."""

    uuid: str
    deployable_uuid: str
    image_uuid: str
    state: ProgramState
    step: ProgramStep
    reason: str  # of a failure or a delay; empty: neither
    created_at: datetime
    updated_at: datetime | None = None  # None: never updated

    @property
    def progress(self) -> int:
        """Percentage by step; vendor tools do not report their progress."""
        return _PROGRESS[self.step]
