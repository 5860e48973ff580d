# SPDX-License-Identifier: Apache-2.0
"""Tests of the number of ARQs and handles of a device profile."""

import pytest

from cyborg_lite.model.profiles.device_profiles import AttachTarget, Group

XILINX = {'trait:CUSTOM_FPGA_XILINX': 'required'}


@pytest.mark.parametrize(
    ('group', 'arqs', 'handles'),
    [
        ({'resources:FPGA': '2'}, 2, 2),
        ({'resources:FPGA': '1', **XILINX}, 2, 1),
        ({'resources:FPGA': '1', **XILINX}, 1, 1),
        ({'resources:FPGA': '3', **XILINX}, 6, 3),
        ({'resources:FPGA': '3', **XILINX}, 3, 2),
        ({}, 1, 1),
    ],
)
def test_count_handles_two_xilinx_arqs_share_handle(
    group: dict[str, str], arqs: int, handles: int
) -> None:
    assert Group.parse(group).requirements.count_handles(arqs) == handles


@pytest.mark.parametrize(
    ('group', 'target'),
    [
        ({}, AttachTarget.VM),
        ({'accel:attach_target': 'host'}, AttachTarget.HOST),
        ({'accel:attach_target': 'none'}, AttachTarget.NONE),
        # Rows of another service may have any value.
        ({'accel:attach_target': 'moon'}, AttachTarget.VM),
    ],
)
def test_attach_target_defaults_to_vm(
    group: dict[str, str], target: AttachTarget
) -> None:
    assert Group.parse(group).attach_target is target
