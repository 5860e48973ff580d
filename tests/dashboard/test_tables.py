# SPDX-License-Identifier: Apache-2.0
"""Tests of the texts of tables."""

from openstack_dashboard.api.base import APIDictWrapper

from cyborg_lite_dashboard.project.accelerator_requests.tables import find_state_style
from cyborg_lite_dashboard.project.device_profiles.tables import describe_groups
from cyborg_lite_dashboard.project.device_profiles.views import list_reasons
from cyborg_lite_dashboard.records import format_time, join_reason


def test_groups_are_described_by_resource_classes() -> None:
    groups = [
        {'resources:PGPU': '2', 'trait:CUSTOM_A': 'required'},
        {'resources:FPGA': '1', 'resources:VGPU': '3'},
    ]
    profile = APIDictWrapper({'groups': groups})
    assert describe_groups(profile) == '2 x PGPU; 1 x FPGA, 3 x VGPU'


def test_time_of_api_is_shown_to_the_second() -> None:
    assert format_time('2026-01-02T03:04:05.678901+00:00') == '2026-01-02 03:04:05'
    assert format_time(None) == '-'
    assert format_time('soon') == '-'


def test_reason_follows_value() -> None:
    device = APIDictWrapper({'status': 'maintaining', 'text': 'fan'})
    assert join_reason(device, 'status', 'text') == 'maintaining: fan'
    assert join_reason(device, 'status', 'absent') == 'maintaining'


def test_reasons_of_groups_have_their_numbers() -> None:
    host = {
        'reasons': [{'text': 'The agent is down.'}],
        'groups': [{'group': 1, 'reasons': [{'text': 'No trait.'}]}],
    }
    assert list(list_reasons(host)) == ['The agent is down.', 'Group 1: No trait.']


def test_unfinished_states_are_warnings() -> None:
    styles = map(find_state_style, ('Bound', 'BindFailed', 'BindStarted'))
    assert list(styles) == ['success', 'danger', 'warning']
