# SPDX-License-Identifier: Apache-2.0
"""How many accelerators a profile makes."""

from datetime import UTC, datetime

import pytest

from cyborg_lite.model.device_profiles import (
    AttachTarget,
    DeviceProfile,
    arq_count,
    attach_target,
    handle_count,
)

XILINX = {'trait:CUSTOM_FPGA_XILINX': 'required'}


@pytest.mark.parametrize(
    ('group', 'count'),
    [
        ({'resources:FPGA': '1'}, 1),
        ({'resources:FPGA': '2', 'resources:CUSTOM_X': '3'}, 5),
        ({'resources:PGPU': '4', 'trait:CUSTOM_A': 'required'}, 4),
        ({'resources:FPGA': '1', **XILINX}, 2),
        ({'resources:FPGA': '3', 'resources:GPU': '1', **XILINX}, 7),
        # Nothing is doubled without an FPGA, or where the trait is forbidden.
        ({'resources:GPU': '1', **XILINX}, 1),
        ({'resources:FPGA': '1', 'trait:CUSTOM_FPGA_XILINX': 'forbidden'}, 1),
        ({'accel:function_id': 'x'}, 0),
        ({}, 0),
    ],
)
def test_a_group_makes_one_request_for_each_unit(
    group: dict[str, str], count: int
) -> None:
    assert arq_count(group) == count


def test_a_profile_knows_the_classes_of_all_its_groups() -> None:
    profile = DeviceProfile(
        uuid='u',
        name='n',
        description=None,
        groups=({'resources:FPGA': '1', 'accel:x': 'y'}, {'resources:GPU': '1'}),
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert profile.resource_classes() == {'FPGA', 'GPU'}


@pytest.mark.parametrize(
    ('group', 'requests', 'handles'),
    [
        ({'resources:FPGA': '2'}, 2, 2),
        ({'resources:FPGA': '1', **XILINX}, 2, 1),
        ({'resources:FPGA': '1', **XILINX}, 1, 1),
        ({'resources:FPGA': '3', **XILINX}, 6, 3),
        ({'resources:FPGA': '3', **XILINX}, 3, 2),
        ({}, 1, 1),
    ],
)
def test_two_requests_of_a_xilinx_fpga_share_its_one_handle(
    group: dict[str, str], requests: int, handles: int
) -> None:
    assert handle_count(group, requests) == handles


@pytest.mark.parametrize(
    ('group', 'target'),
    [
        ({}, AttachTarget.VM),
        ({'accel:attach_target': 'host'}, AttachTarget.HOST),
        ({'accel:attach_target': 'none'}, AttachTarget.NONE),
        # A database that was filled by another service may say anything.
        ({'accel:attach_target': 'moon'}, AttachTarget.VM),
    ],
)
def test_an_accelerator_is_for_the_guest_unless_it_says_otherwise(
    group: dict[str, str], target: AttachTarget
) -> None:
    assert attach_target(group) is target
