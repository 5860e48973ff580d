# SPDX-License-Identifier: Apache-2.0
"""Tests of the input of the form for the groups of a profile."""

from typing import Any

import pytest

from cyborg_lite_dashboard.admin.device_profiles.forms import GroupForm
from cyborg_lite_dashboard.admin.device_profiles.group_fields import build_inputs

COMPUTED = 'trait:CUSTOM_CYBORG_SEL_0123456789ABCDEF01234567'


@pytest.mark.parametrize(
    'group',
    [
        {'resources:PGPU': '1'},
        {
            'resources:CUSTOM_NIC': '2',
            'trait:CUSTOM_A': 'required',
            'trait:CUSTOM_B': 'forbidden',
            'trait:CUSTOM_C': 'required',
        },
        {
            'resources:VGPU': '1',
            'accel:selector': 'device.memory_mib >= 40GiB',
            'accel:attach_target': 'host',
            'accel:video_ram': '2GB',
        },
        {'resources:FPGA': '1', 'accel:attach_target': 'VM'},
        {'resources:FPGA': '1', 'accel:function_name': 'a=b c'},
    ],
)
def test_input_results_in_group(group: dict[str, str]) -> None:
    inputs = build_inputs([{**group, COMPUTED: 'required'}])
    assert inputs is not None
    form = GroupForm(inputs[0])
    assert form.is_valid(), form.errors
    assert form.build_group() == group


@pytest.mark.parametrize(
    'group',
    [
        {'resources:PGPU': '1', 'resources:VGPU': '1'},
        {'resources:PGPU': '1', 'alternatives': [{'resources:VGPU': '1'}]},
        {'resources:PGPU': '1', 'accel:function_name': 'two\nlines'},
        {'resources:PGPU': '1', 'accel:function_name': ' space'},
        {'trait:CUSTOM_A': 'required'},
    ],
)
def test_group_beyond_form_has_no_input(group: dict[str, Any]) -> None:
    assert build_inputs([{'resources:PGPU': '1'}, group]) is None


def test_too_many_groups_have_no_input() -> None:
    assert build_inputs([{'resources:PGPU': '1'}] * 17) is None
