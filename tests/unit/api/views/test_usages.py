# SPDX-License-Identifier: Apache-2.0
"""Tests of the use of units in responses."""

from cyborg_lite.api.views.usages import UsageList
from cyborg_lite.model.usages import UnitUsage, UsageQuery, UsageReport
from tests.builders.api_calls import build_call, render


def test_usage_list_has_end_of_report() -> None:
    """The end of the query lies in the future."""
    report = UsageReport((UnitUsage('p', 'PGPU', 'gpu', 5_400_000),), end=3_600_000)
    body = render(UsageList.build(UsageQuery(0, 7_200_000), report, build_call()))
    assert (body['start'], body['end']) == (
        '1970-01-01T00:00:00+00:00',
        '1970-01-01T01:00:00+00:00',
    )
    assert body['usages'] == [
        {
            'project_id': 'p',
            'resource_class': 'PGPU',
            'device_profile_name': 'gpu',
            'unit_hours': 1.5,
        }
    ]
