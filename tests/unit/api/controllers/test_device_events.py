# SPDX-License-Identifier: Apache-2.0
"""Tests of the history of devices at microversion 2.7."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cyborg_lite.model.devices.events import DeviceEvent, DeviceEventKind
from tests.builders.device_rows import add_device
from tests.support.api.conversation import MANAGER, Client, build_policy_client

AT = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
UNKNOWN = '5c9a477a-d3d4-426a-9e9c-b2660917780e'


@pytest.fixture
def newest(client: Client) -> Client:
    return client.at('2.7')


def test_list_events_shows_latest_first(newest: Client) -> None:
    device = add_device(newest.conductor.database)
    later = AT + timedelta(hours=1)
    newest.conductor.answers['list_device_events'] = (
        DeviceEvent(DeviceEventKind.CLEANED, later, 'compute-1', '0000:3b:00.0'),
        DeviceEvent(DeviceEventKind.ADDED, AT, 'compute-1', value='ok'),
    )
    body = newest.get(f'/devices/{device.uuid}/events').json
    assert body['events'] == [
        {
            'kind': 'cleaned',
            'at': '2026-11-22T10:30:00+00:00',
            'hostname': 'compute-1',
            'unit': '0000:3b:00.0',
            'value': None,
            'reason': None,
        },
        {
            'kind': 'added',
            'at': '2026-11-22T09:30:00+00:00',
            'hostname': 'compute-1',
            'unit': None,
            'value': 'ok',
            'reason': None,
        },
    ]
    assert body['links'][0]['href'].endswith(f'/v2/devices/{device.uuid}/events')


@pytest.mark.parametrize('identifier', [UNKNOWN, 'no-uuid'])
def test_list_events_unknown_device_is_404(newest: Client, identifier: str) -> None:
    assert newest.get(f'/devices/{identifier}/events').status == 404


def test_list_events_only_admin_sees_uuids_in_reason(tmp_path: Path) -> None:
    """The ARQs and instances belong to all projects."""
    rule = '"cyborg:device:get_events": "rule:project_manager_or_admin"'
    newest = build_policy_client(tmp_path, rule).at('2.7')
    device = add_device(newest.conductor.database)
    kind, reason = DeviceEventKind.MODE_CHANGE_FAILED, f'ARQs use it: {UNKNOWN}.'
    event = DeviceEvent(kind, AT, 'compute-1', value='b', reason=reason)
    newest.conductor.answers['list_device_events'] = (event,)
    for client, text in (
        (newest, reason),
        (newest.as_(MANAGER, '2.7'), 'ARQs use it: (hidden).'),
    ):
        (view,) = client.get(f'/devices/{device.uuid}/events').json['events']
        assert view['reason'] == text
