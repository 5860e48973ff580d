# SPDX-License-Identifier: Apache-2.0
"""Tests of the progress of a cleaning run."""

from datetime import UTC, datetime

import pytest

from cyborg_lite.model.devices.cleaning import (
    CleanProgress,
    CleanProgressState,
    CleanStep,
    CleanStepResult,
)

TIME = datetime(2026, 11, 21, tzinfo=UTC)
STEPS = CleanStep('format', 'all data'), CleanStep('verify', 'nothing')


@pytest.mark.parametrize(
    ('names', 'text'),
    [
        ((), ''),
        (('format',), '1/2 format'),
        (('verify',), '2/2 verify'),  # an earlier process has completed the first step
        (('format', 'gone'), '2/2 gone'),
    ],
)
def test_progress_text_counts_steps(names: tuple[str, ...], text: str) -> None:
    results = tuple(CleanStepResult(name, TIME) for name in names)
    progress = CleanProgress(CleanProgressState.RUNNING, 's', STEPS, results)
    assert progress.text == text
