# SPDX-License-Identifier: Apache-2.0
"""How far a load by hand has come, as a number."""

from dataclasses import replace
from datetime import UTC, datetime

from cyborg_lite.model.program_jobs import ProgramJob, ProgramState, ProgramStep


def test_progress_never_goes_back_and_ends_at_a_hundred() -> None:
    at = datetime(2026, 11, 21, tzinfo=UTC)
    job = ProgramJob('u', 'd', 'i', ProgramState.RUNNING, ProgramStep.ACCEPTED, '', at)
    shown = [replace(job, step=step).progress for step in ProgramStep]
    assert shown == sorted(shown)
    assert (shown[0], shown[-1]) == (0, 100)
