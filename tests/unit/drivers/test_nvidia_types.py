# SPDX-License-Identifier: Apache-2.0
"""Names, sizes and lists of vGPU types."""

import pytest

from cyborg_lite.drivers.nvidia_types import (
    CREATABLE,
    VgpuType,
    label_of,
    listed_types,
    mdev_types,
)
from cyborg_lite.drivers.sysfs import Host, PciFunction
from tests.unit.drivers.conftest import Plug


@pytest.mark.parametrize(
    ('name', 'label', 'memory', 'on_instance'),
    [
        ('GRID T4-2B', 'T4_2B', 2048, False),
        ('GRID T4-2B4', 'T4_2B4', 2048, False),
        ('GRID M60-0Q', 'M60_0Q', 512, False),
        ('NVIDIA L40S-24Q', 'L40S_24Q', 24576, False),
        ('NVIDIA RTX Pro 6000 Blackwell DC-3Q', 'RTX_PRO_6000_BLACKWELL_DC_3Q', 3072,
         False),
        ('GRID A100-1-5C', 'A100_1_5C', 5120, True),
        ('GRID A100-1-5CME', 'A100_1_5CME', 5120, True),
        ('NVIDIA H200X-1-18C', 'H200X_1_18C', 18432, True),
        ('A100_1_5C', 'A100_1_5C', 5120, True),  # as a unit's key has it
        ('nvidia-231', 'NVIDIA_231', None, False),  # the kernel has no name
    ],
)  # fmt: skip
def test_a_name_tells_what_a_type_is(
    name: str, label: str, memory: int | None, on_instance: bool
) -> None:
    each = VgpuType('1', name, available=0)
    assert (each.label, each.memory, each.on_instance) == (label, memory, on_instance)
    assert label_of(each.label) == each.label


@pytest.mark.parametrize(
    'wanted', ['nvidia-231', '231', 'GRID T4-2Q', 'T4-2Q', 'T4_2Q', 't4-2q']
)
def test_an_operator_may_call_it_by_id_number_or_name(wanted: str) -> None:
    assert VgpuType('nvidia-231', 'GRID T4-2Q', 0).answers_to(wanted)
    assert not VgpuType('nvidia-232', 'GRID T4-4Q', 0).answers_to(wanted)


@pytest.mark.parametrize(
    'text',
    [
        'ID    : vGPU Name\n1155  : NVIDIA L40S-24Q',
        '1155:NVIDIA L40S-24Q',
        ' 1155 :  NVIDIA L40S-24Q  \n\ngarbage\nNVIDIA L40S-24Q : 1155',
    ],
)
def test_a_list_is_read_whatever_its_spaces(text: str, host: Host, plug: Plug) -> None:
    plug('0000:82:00.4', files={CREATABLE: text})
    assert listed_types(PciFunction(host, '0000:82:00.4')) == (
        VgpuType('1155', 'NVIDIA L40S-24Q', 1),
    )


def test_a_list_of_a_heading_alone_has_nothing(host: Host, plug: Plug) -> None:
    plug('0000:82:00.4', files={CREATABLE: 'ID    : vGPU Name'})
    assert listed_types(PciFunction(host, '0000:82:00.4')) == ()


def test_a_type_without_name_and_description_goes_by_its_id(
    host: Host, plug: Plug
) -> None:
    where = 'mdev_supported_types/i915-GVTg_V5_4'
    plug('0000:00:02.0', files={f'{where}/available_instances': '3'})
    assert mdev_types(PciFunction(host, '0000:00:02.0')) == (
        VgpuType('i915-GVTg_V5_4', 'i915-GVTg_V5_4', 3),
    )
