# SPDX-License-Identifier: Apache-2.0
"""Tests of explanations of device profiles in responses."""

from datetime import UTC, datetime
from typing import Any

from cyborg_lite.api.views.capacity import ExplanationView
from cyborg_lite.model.capacity.explanations import (
    Explanation,
    FitResult,
    GroupFit,
    HostFit,
    Reason,
    ReasonCode,
)
from cyborg_lite.model.profiles.device_profiles import DeviceProfile
from tests.builders.api_calls import render

UUID = '5c9a477a-d3d4-426a-9e9c-b2660917780e'
PROFILE = DeviceProfile(UUID, 'gpu', None, (), datetime(2026, 11, 21, tzinfo=UTC))
FULL = Reason(
    ReasonCode.NO_FREE_UNIT, 'No unit is free.', 0, 'PGPU', ('CUSTOM_A',), ('card-1',)
)


def build_body(*hosts: HostFit, warnings: tuple[Reason, ...] = ()) -> Any:
    explanation = Explanation(FitResult.NOT_NOW, '0 of 1 hosts', hosts, warnings)
    return render(ExplanationView(profile=PROFILE, explanation=explanation))


def test_explanation_view_shows_profile_and_result() -> None:
    body = build_body()
    assert body == {
        'device_profile_uuid': UUID,
        'device_profile_name': 'gpu',
        'verdict': 'not-now',
        'summary': '0 of 1 hosts',
        'warnings': [],
        'hosts': [],
    }


def test_explanation_view_shows_reasons_of_groups_and_hosts() -> None:
    together = Reason(ReasonCode.NOT_TOGETHER, 'Both groups need one card.')
    host = HostFit('compute-1', False, (GroupFit(0, False, (FULL,)),), (together,))
    (body,) = build_body(host)['hosts']
    assert (body['hostname'], body['fits']) == ('compute-1', False)
    (group,) = body['groups']
    assert (group['group'], group['fits']) == (0, False)
    assert group['reasons'] == [
        {
            'code': 'no-free-unit',
            'text': 'No unit is free.',
            'group': 0,
            'resource_class': 'PGPU',
            'traits': ['CUSTOM_A'],
            'providers': ['card-1'],
        }
    ]
    assert [reason['code'] for reason in body['reasons']] == ['not-together']


def test_explanation_view_unset_reason_fields_are_null() -> None:
    warning = Reason(ReasonCode.STRANGERS, 'A foreign provider fits.')
    (body,) = build_body(warnings=(warning,))['warnings']
    assert (body['group'], body['resource_class'], body['traits']) == (None, None, [])
