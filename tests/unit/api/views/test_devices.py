# SPDX-License-Identifier: Apache-2.0
"""Tests of devices in responses."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from cyborg_lite.api.microversion import V2_2, V2_3, V2_4, V2_5
from cyborg_lite.api.views.devices import DeviceList, DeviceView
from cyborg_lite.model.devices.devices import DeviceRecord, DeviceStatus
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Health
from tests.builders.api_calls import render

ARQ = '853f07a6-19de-3dd6-b9f6-6c782daa3f7b'
DEVICE = DeviceRecord(
    uuid='5c9a477a-d3d4-426a-9e9c-b2660917780e',
    type='GPU',
    vendor='10de',
    model='Tesla T4',
    hostname='compute-1',
    std_board_info='{"product_id": "1eb8"}',
    vendor_board_info=None,
    status=DeviceStatus.MAINTAINING,
    health=Health.DEGRADED,
    health_reason='hot',
    created_at=datetime(2026, 11, 21, tzinfo=UTC),
    status_reason='a new fan',
    arqs=(ARQ,),
)


def test_device_view_status_needs_2_3() -> None:
    assert 'status' not in render(DeviceView(DEVICE), V2_2)
    body = render(DeviceView(DEVICE), V2_3)
    assert body['status'] == 'maintaining'
    assert 'health' not in body


def test_device_view_details_need_2_4() -> None:
    body = render(DeviceView(DEVICE), V2_4)
    assert (body['health'], body['health_reason']) == ('degraded', 'hot')
    assert (body['status_reason'], body['arqs_count']) == ('a new fan', 1)
    assert body['usage'] is None


def test_device_view_arqs_are_shown_to_admins_only() -> None:
    assert 'arqs' not in render(DeviceView(DEVICE), V2_4)
    body = render(DeviceView(DEVICE), V2_4, is_admin=True)
    assert body['arqs'] == [ARQ]


def test_device_view_usage_distinguishes_zero_and_unknown() -> None:
    device = replace(DEVICE, usage=Usage(busy_percent=0.0, counters={'fatal': 2}))
    usage = render(DeviceView(device), V2_4)['usage']
    assert (usage['busy_percent'], usage['power']) == (0.0, None)
    assert usage['counters'] == {'fatal': 2}


def test_device_view_board_info_stays_json_text() -> None:
    body = render(DeviceView(DEVICE))
    assert body['std_board_info'] == '{"product_id": "1eb8"}'
    assert body['vendor_board_info'] is None


def test_device_list_contains_all_devices() -> None:
    body = render(DeviceList([DEVICE, DEVICE]))
    assert body.keys() == {'devices'}
    assert len(body['devices']) == 2


def test_device_view_ages_need_2_5() -> None:
    now = datetime.now(UTC)
    device = replace(
        DEVICE,
        usage=Usage(busy_percent=5.0),
        usage_at=now - timedelta(hours=1),
        health_since=now,
    )
    assert 'usage_age' not in render(DeviceView(device), V2_4)
    body = render(DeviceView(device), V2_5)
    assert 3600 <= body['usage_age'] < 7200
    assert body['health_since'] == now.isoformat()
    without = render(DeviceView(DEVICE), V2_5)
    assert (without['usage_age'], without['health_since']) == (None, None)
