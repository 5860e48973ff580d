# SPDX-License-Identifier: Apache-2.0
"""Tests of cleans of devices in responses."""

from datetime import UTC, datetime
from typing import Any

from cyborg_lite.api.views.cleanings import CleaningList
from cyborg_lite.model.devices.cleaning import (
    CleaningRecord,
    CleaningState,
    CleanState,
    CleanStepResult,
    DeviceCleanings,
    UnitState,
)
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from tests.builders.api_calls import render

TIME = datetime(2026, 11, 21, tzinfo=UTC)
STEP = CleanStepResult('sanitize', TIME, TIME, 'nvme 2.4')
RECORD = CleaningRecord(
    'u', '0000:3b:00.0', CleaningState.FAILED, 'admin', TIME, TIME, (STEP,), 2, 'lost'
)


# Any: JSON.
def build(device: DeviceCleanings) -> Any:
    view = CleaningList(uuid='d', units=device.units, cleanings=device.cleanings)
    return render(view, is_admin=True)


def test_cleaning_list_shows_units_and_steps() -> None:
    unit = UnitState(
        '0000:3b:00.0', CleanState.FAILED, CleaningPolicy.AFTER_USE, 'lost'
    )
    body = build(DeviceCleanings((unit,), (RECORD,)))
    assert body == {
        'units': [
            {
                'unit': '0000:3b:00.0',
                'state': 'clean_failed',
                'policy': CleaningPolicy.AFTER_USE.value,
                'reason': 'lost',
            }
        ],
        'cleanings': [
            {
                'uuid': 'u',
                'unit': '0000:3b:00.0',
                'state': 'failed',
                'actor': 'admin',
                'started_at': '2026-11-21T00:00:00+00:00',
                'finished_at': '2026-11-21T00:00:00+00:00',
                'steps': [
                    {
                        'name': 'sanitize',
                        'started_at': '2026-11-21T00:00:00+00:00',
                        'finished_at': '2026-11-21T00:00:00+00:00',
                        'tool': 'nvme 2.4',
                        'error': None,
                    }
                ],
                'step_count': 2,
                'reason': 'lost',
            }
        ],
        'links': [{'href': 'http://api/v2/devices/d/cleanings', 'rel': 'self'}],
    }


def test_clean_unit_has_no_reason() -> None:
    unit = UnitState('0000:3b:00.0', CleanState.CLEAN, CleaningPolicy.AFTER_USE)
    body = build(DeviceCleanings((unit,)))
    assert (body['units'][0]['reason'], body['cleanings']) == (None, [])
