# SPDX-License-Identifier: Apache-2.0
"""Tests of the history of a device in responses."""

from datetime import UTC, datetime

from cyborg_lite.api.views.devices import DeviceEventList
from cyborg_lite.model.devices.events import DeviceEvent, DeviceEventKind
from tests.builders.api_calls import render

TIME = datetime(2026, 11, 21, tzinfo=UTC)


def test_event_list_has_null_for_empty_fields() -> None:
    events = [
        DeviceEvent(DeviceEventKind.CLEANED, TIME, 'compute-1', unit='0000:3b:00.0'),
        DeviceEvent(DeviceEventKind.PROGRAMMED, TIME, 'compute-1', value='image'),
    ]
    assert render(DeviceEventList(uuid='d', events=events)) == {
        'events': [
            {
                'event': 'cleaned',
                'at': '2026-11-21T00:00:00+00:00',
                'hostname': 'compute-1',
                'unit': '0000:3b:00.0',
                'value': None,
                'reason': None,
            },
            {
                'event': 'programmed',
                'at': '2026-11-21T00:00:00+00:00',
                'hostname': 'compute-1',
                'unit': None,
                'value': 'image',
                'reason': None,
            },
        ],
        'links': [{'href': 'http://api/v2/devices/d/events', 'rel': 'self'}],
    }
