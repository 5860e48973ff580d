# SPDX-License-Identifier: Apache-2.0
"""Programming jobs as clients read them before 2.7."""

import enum


class ProgramState(enum.StrEnum):
    """States of a programming job."""

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

    @property
    def progress(self) -> int:
        """Percentage by step; vendor tools do not report their progress."""
        return {'accepted': 0, 'checking': 10, 'loading': 25, 'loaded': 100}[self.value]
