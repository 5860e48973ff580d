# SPDX-License-Identifier: Apache-2.0
"""Tests of the progress of programming jobs."""

from cyborg_lite.model.bitstreams.bitstreams import ProgramStep


def test_progress_increases_from_zero_to_hundred() -> None:
    progress = [step.progress for step in ProgramStep]
    assert progress == sorted(progress)
    assert (progress[0], progress[-1]) == (0, 100)
