# SPDX-License-Identifier: Apache-2.0
"""Tests of the limits of a project."""

from collections.abc import Mapping

import pytest

from cyborg_lite.errors.arqs import ProjectLimitExceeded
from cyborg_lite.model.arqs.project_limits import (
    UNLIMITED,
    ProjectLimits,
    list_resources,
)

NAMES = ('accelerator_requests', 'class:PGPU')


def test_list_resources_has_arqs_and_each_class() -> None:
    groups = {'resources:PGPU': '1'}, {'resources:FPGA': '2', 'accel:bitstream_id': 'i'}
    assert list_resources(groups) == {
        'accelerator_requests',
        'class:PGPU',
        'class:FPGA',
    }


@pytest.mark.parametrize(
    'used',
    [
        {'accelerator_requests': 4, 'class:PGPU': 1_000},
        {'accelerator_requests': 0},
        {'class:FPGA': 9},  # no resource of the request
    ],
)
def test_check_accepts_use_up_to_limits(used: Mapping[str, int]) -> None:
    limits = {'accelerator_requests': 4, 'class:PGPU': UNLIMITED}
    ProjectLimits('p', limits).check(used, NAMES)


def test_check_names_each_excess() -> None:
    """A resource without a limit has the limit 0."""
    used = {'accelerator_requests': 5, 'class:PGPU': 1}
    with pytest.raises(ProjectLimitExceeded) as error:
        ProjectLimits('p', {'accelerator_requests': 4}).check(used, NAMES)
    assert error.value.kwargs['excesses'] == (
        'accelerator_requests would be 5, the limit is 4; '
        'class:PGPU would be 1, the limit is 0'
    )
