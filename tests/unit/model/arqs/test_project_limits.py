# SPDX-License-Identifier: Apache-2.0
"""Tests of the limits of a project."""

from cyborg_lite.model.arqs.project_limits import (
    list_resources,
)


def test_list_resources_has_arqs_and_each_class() -> None:
    groups = {'resources:PGPU': '1'}, {'resources:FPGA': '2', 'accel:bitstream_id': 'i'}
    assert list_resources(groups) == {
        'accelerator_requests',
        'class:PGPU',
        'class:FPGA',
    }
