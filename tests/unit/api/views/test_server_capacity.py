# SPDX-License-Identifier: Apache-2.0
"""Tests of numbers of further servers in responses."""

from datetime import UTC, datetime
from typing import Any

from cyborg_lite.api.views.capacity import ProfileCapacityView
from cyborg_lite.model.capacity.explanations import Reason, ReasonCode
from cyborg_lite.model.capacity.server_capacity import (
    HostCapacity,
    ProfileCapacity,
    Shortage,
)
from cyborg_lite.model.profiles.device_profiles import DeviceProfile
from tests.builders.api_calls import render

UUID = '5c9a477a-d3d4-426a-9e9c-b2660917780e'
PROFILE = DeviceProfile(UUID, 'gpu', None, (), datetime(2026, 11, 21, tzinfo=UTC))
SHORTAGE = Shortage((0, 1), ('PGPU',), ('CUSTOM_T4',), 'No unit is free.', 2)


def build_body(capacity: ProfileCapacity) -> Any:
    return render(ProfileCapacityView(profile=PROFILE, capacity=capacity))


def test_capacity_without_hosts_has_no_shortage() -> None:
    body = build_body(ProfileCapacity(0, (), None))
    assert body == {
        'device_profile_uuid': UUID,
        'device_profile_name': 'gpu',
        'servers': 0,
        'is_exact': True,
        'shortage': None,
        'warnings': [],
        'hosts': [],
        'alternatives': [],
    }


def test_capacity_shows_hosts_with_shortages() -> None:
    host = HostCapacity('compute-1', 3, SHORTAGE, False)
    body = build_body(ProfileCapacity(3, (host,), SHORTAGE, False, choice=(1, 0)))
    shortage = {
        'groups': [0, 1],
        'resource_classes': ['PGPU'],
        'traits': ['CUSTOM_T4'],
        'hosts': 2,
        'text': 'No unit is free.',
    }
    assert (body['shortage'], body['alternatives']) == (shortage, [1, 0])
    assert body['hosts'] == [
        {
            'hostname': 'compute-1',
            'servers': 3,
            'is_exact': False,
            'shortage': shortage,
        }
    ]


def test_capacity_shows_warnings() -> None:
    reason = Reason(ReasonCode.STRANGERS, 'A provider is of another service.')
    body = build_body(ProfileCapacity(0, (), None, warnings=(reason,)))
    assert [warning['text'] for warning in body['warnings']] == [reason.text]
