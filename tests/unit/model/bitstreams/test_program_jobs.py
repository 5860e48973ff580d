# SPDX-License-Identifier: Apache-2.0
"""Tests of the progress of programming jobs."""

from dataclasses import replace
from datetime import UTC, datetime

from cyborg_lite.model.bitstreams.program_jobs import (
    ProgramJob,
    ProgramState,
    ProgramStep,
)


def test_progress_increases_from_zero_to_hundred() -> None:
    at = datetime(2026, 11, 21, tzinfo=UTC)
    job = ProgramJob('u', 'd', 'i', ProgramState.RUNNING, ProgramStep.ACCEPTED, '', at)
    progress = [replace(job, step=step).progress for step in ProgramStep]
    assert progress == sorted(progress)
    assert (progress[0], progress[-1]) == (0, 100)
