# SPDX-License-Identifier: Apache-2.0
"""Tests of the rules for heartbeats and progress that agents send."""

from dataclasses import replace

import pytest

from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.devices.cleaning import (
    CleanProgress,
    CleanProgressState,
    CleanStep,
)
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.hosts.services import HeartbeatDetails
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.limits import check_message, check_values
from tests.builders.unclean_units import build_progress

HOST, ADDRESS = 'compute-1', '0000:01:00.0'
PROGRESS = build_progress(CleanProgressState.FAILED, reason='medium error')


def test_check_heartbeat_plausible_telemetry_is_accepted() -> None:
    usage = Usage(
        Health.DEGRADED,
        'hot',
        busy_percent=0.0,
        memory_used=2**40,
        memory_total=2**41,
        temperature=-10.0,
        counters={'fatal': 2},
    )
    check_message(
        HOST, HeartbeatDetails('boot', {ADDRESS: usage, '0000:02:00.0': Usage()})
    )


@pytest.mark.parametrize(
    ('host', 'details'),
    [
        ('', HeartbeatDetails()),
        ('x' * 256, HeartbeatDetails()),
        (HOST, HeartbeatDetails('x' * 65)),
        (HOST, HeartbeatDetails('boot', {'x' * 65: Usage()})),
        (
            HOST,
            HeartbeatDetails(
                'boot', {f'card{number}': Usage() for number in range(1025)}
            ),
        ),
    ],
)
def test_check_heartbeat_out_of_bounds_names_raise(
    host: str, details: HeartbeatDetails
) -> None:
    with pytest.raises(InvalidInput):
        check_message(host, details)


@pytest.mark.parametrize(
    'progress',
    [
        replace(PROGRESS, reason='\0'),
        replace(PROGRESS, session='x' * 65),
        replace(PROGRESS, steps=(CleanStep('x' * 41, 'nothing'),)),
        replace(PROGRESS, steps=(CleanStep('x', 'nothing'),) * 65),
        replace(PROGRESS, results=(replace(PROGRESS.results[0], proof='x' * 256),)),
        replace(PROGRESS, results=(replace(PROGRESS.results[0], error='\0'),)),
    ],
)
def test_check_clean_progress_unstorable_raises(progress: CleanProgress) -> None:
    check_values(PROGRESS)
    with pytest.raises(InvalidInput):
        check_values(progress)
