# SPDX-License-Identifier: Apache-2.0
"""Tests of devices since 2.4: status, usage, maintenance, pages, history."""

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite import codec
from cyborg_lite.model.devices.devices import DeviceRecord
from cyborg_lite.model.devices.events import DeviceEvent, DeviceEventKind
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Health
from tests.builders.device_rows import add_deployable, add_device
from tests.builders.patches import build_replace_patch
from tests.support.api.conversation import MANAGER, Client, build_policy_client

AT = datetime(2026, 11, 22, 9, 30, tzinfo=UTC)
UNKNOWN = 'd5ca2f11-3108-4426-a11c-a959987565df'
ADDED = {'status_reason', 'health', 'health_reason', 'arqs_count', 'arqs', 'usage'}


@pytest.fixture
def newest(client: Client) -> Client:
    return client.at('2.4')


def use(client: Client, device: DeviceRecord) -> None:
    """Have an ARQ use the only device."""
    user = dataclasses.replace(device, arqs=(UNKNOWN,))
    client.conductor.answers['list_devices'] = (user,)


def test_show_device_has_status_reason_and_arqs(newest: Client) -> None:
    device = add_device(
        newest.conductor.database,
        health=Health.FAILED,
        health_reason='XID 79',
        status_reason='to be replaced',
    )
    use(newest, device)
    view = newest.get(f'/devices/{device.uuid}').json
    assert {name: view[name] for name in ADDED} == {
        'status_reason': 'to be replaced',
        'health': 'failed',
        'health_reason': 'XID 79',
        'arqs_count': 1,
        'arqs': [UNKNOWN],
        'usage': None,
    }
    assert newest.get('/devices').json['devices'] == [view]
    older = newest.at('2.3').get(f'/devices/{device.uuid}').json
    assert view.keys() - older.keys() == ADDED


def test_show_device_has_usage(newest: Client) -> None:
    usage = Usage(busy_percent=12.5, memory_used=2**40, counters={'ecc': 3})
    database = newest.conductor.database
    device = add_device(database, telemetry=codec.dump(usage))
    view = newest.get(f'/devices/{device.uuid}').json['usage']
    values = {name: value for name, value in view.items() if value is not None}
    assert values == {
        'busy_percent': 12.5,
        'memory_used': 2**40,
        'counters': {'ecc': 3},
    }


def test_show_device_has_ages_since_2_5(newest: Client) -> None:
    now = datetime.now(UTC)
    values = {'telemetry': codec.dump(Usage(busy_percent=0.0)), 'health_since': now}
    database = newest.conductor.database
    device = add_device(database, telemetry_at=now - timedelta(hours=1), **values)
    view = newest.at('2.5').get(f'/devices/{device.uuid}').json
    assert 3600 <= view['usage_age'] < 7200
    assert view['health_since'] == now.isoformat()
    assert view['usage']['busy_percent'] == 0.0
    older = newest.get(f'/devices/{device.uuid}').json
    assert not {'usage_age', 'health_since'} & older.keys()
    second = newest.at('2.5').get(f'/devices/{add_device(database).uuid}').json
    assert second['usage_age'] is None


def test_show_device_as_manager_hides_arqs(newest: Client) -> None:
    device = add_device(newest.conductor.database)
    use(newest, device)
    answer = newest.as_(MANAGER).get(f'/devices/{device.uuid}')
    assert answer.json['arqs_count'] == 1
    assert 'arqs' not in answer.json
    assert UNKNOWN.encode() not in answer.body


@pytest.mark.parametrize('name', ['status_reason', 'health_reason'])
def test_device_only_admin_sees_uuids_in_reasons(newest: Client, name: str) -> None:
    """Consumers in Placement are instances of all projects."""
    reason = f'Used by {UNKNOWN}.'
    device = add_device(newest.conductor.database, **{name: reason})
    for client, text in ((newest, reason), (newest.as_(MANAGER), 'Used by (hidden).')):
        assert client.get(f'/devices/{device.uuid}').json[name] == text
        assert client.get('/devices').json['devices'][0][name] == text


@pytest.mark.parametrize(
    ('query', 'count'), [('health=failed', 1), ('model=FakeDevice', 2), ('model=x', 0)]
)
def test_list_devices_newer_filters(newest: Client, query: str, count: int) -> None:
    add_device(newest.conductor.database)
    add_device(newest.conductor.database, health=Health.FAILED)
    assert len(newest.get(f'/devices?{query}').json['devices']) == count
    assert newest.at('2.3').get(f'/devices?{query}').status == 400


def test_list_deployables_plain_arguments(newest: Client) -> None:
    _, second = (add_deployable(newest.conductor.database, name=name) for name in 'ab')
    picked = newest.get('/deployables?name=b&driver_name=fake').json['deployables']
    assert [view['uuid'] for view in picked] == [second.uuid]
    assert newest.at('2.3').get('/deployables?name=b').status == 400
    assert newest.get('/deployables?parent_uuid=x').status == 400


# --- maintenance ---


def test_patch_device_maintenance_keeps_reason_until_end(newest: Client) -> None:
    path = f'/devices/{add_device(newest.conductor.database).uuid}'
    patch = build_replace_patch(status='maintaining', reason='hot')
    answer = newest.patch(path, patch)
    assert answer.status == 200
    assert (answer.json['status'], answer.json['status_reason']) == (
        'maintaining',
        'hot',
    )
    assert newest.get(path).json == answer.json
    enabled = newest.patch(path, build_replace_patch(status='enabled')).json
    assert (enabled['status'], enabled['status_reason']) == ('enabled', '')


@pytest.mark.parametrize(
    'patch',
    [
        [],
        {},
        build_replace_patch(reason='hot'),
        build_replace_patch(status='gone'),
        build_replace_patch(status=5),
        build_replace_patch(status='enabled', reason='hot'),
        build_replace_patch(status='enabled') * 2,
        build_replace_patch(status='maintaining', reason='a\x00'),
        build_replace_patch(status='maintaining', reason='x' * 256),
        build_replace_patch(type='GPU'),
        [{'op': 'remove', 'path': '/status', 'value': ''}],
        [{'op': 'replace', 'path': '/status'}],
    ],
)
def test_patch_device_invalid_changes_nothing(newest: Client, patch: Any) -> None:
    device = add_device(newest.conductor.database)
    assert newest.patch(f'/devices/{device.uuid}', patch).status == 400
    assert newest.conductor.devices[device.uuid] == device


def test_patch_device_checks_rules_of_actions(tmp_path: Path) -> None:
    ruled = build_policy_client(tmp_path, '"cyborg:device:disable": "!"').at('2.4')
    path = f'/devices/{add_device(ruled.conductor.database).uuid}'
    assert ruled.patch(path, build_replace_patch(status='maintaining')).status == 403
    assert ruled.patch(path, build_replace_patch(status='enabled')).status == 200


def test_list_events_shows_latest_first(newest: Client) -> None:
    device = add_device(newest.conductor.database)
    later = AT + timedelta(hours=1)
    newest.conductor.answers['list_device_events'] = (
        DeviceEvent(DeviceEventKind.CLEANED, later, 'compute-1', '0000:3b:00.0'),
        DeviceEvent(DeviceEventKind.ADDED, AT, 'compute-1', value='ok'),
    )
    body = newest.at('2.7').get(f'/devices/{device.uuid}/events').json
    assert [(event['kind'], event['at']) for event in body['events']] == [
        ('cleaned', '2026-11-22T10:30:00+00:00'),
        ('added', '2026-11-22T09:30:00+00:00'),
    ]
    cleaned, added = body['events']
    assert (cleaned['unit'], cleaned['value']) == ('0000:3b:00.0', None)
    assert (added['unit'], added['value']) == (None, 'ok')
    assert body['links'][0]['href'].endswith(f'/v2/devices/{device.uuid}/events')


def test_list_events_only_admin_sees_uuids_in_reason(tmp_path: Path) -> None:
    """The ARQs and instances belong to all projects."""
    rule = '"cyborg:device:get_events": "rule:project_manager_or_admin"'
    admin = build_policy_client(tmp_path, rule).at('2.7')
    device = add_device(admin.conductor.database)
    kind, reason = DeviceEventKind.MODE_CHANGE_FAILED, f'ARQs use it: {UNKNOWN}.'
    event = DeviceEvent(kind, AT, 'compute-1', value='b', reason=reason)
    admin.conductor.answers['list_device_events'] = (event,)
    for client, text in (
        (admin, reason),
        (admin.as_(MANAGER, '2.7'), 'ARQs use it: (hidden).'),
    ):
        (view,) = client.get(f'/devices/{device.uuid}/events').json['events']
        assert view['reason'] == text
