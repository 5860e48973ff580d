# SPDX-License-Identifier: Apache-2.0
"""Tests of the properties of an instance image that extend a group."""

import pytest

from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.profiles.group_keys import (
    add_image_properties,
    parse_image_properties,
)

IMAGE = '7c1b8719-3f0e-4cf5-9d4a-2f6d3f1a9e55'
FPGA = {'resources:FPGA': '1'}
LOADS = {'accel:function_id': 'ab' * 16}


def test_parse_image_properties_returns_accel_keys_only() -> None:
    properties = {'hw_disk_bus': 'virtio', 'accel:color': 'red', **LOADS}
    assert parse_image_properties(IMAGE, properties) == {'accel:color': 'red', **LOADS}
    assert parse_image_properties(IMAGE, {}) == {}


@pytest.mark.parametrize(
    'properties',
    [
        {'accel:bitstream_id': 'no-uuid'},
        {'accel:attach_target': 'nowhere'},
        {'accel:': 'x'},
        {'accel:color': 'x' * 300},
        {'accel:bitstream_id': IMAGE, 'accel:function_id': 'ab'},
    ],
)
def test_parse_image_properties_invalid_value_raises_with_image(
    properties: dict[str, str],
) -> None:
    with pytest.raises(InvalidInput, match=IMAGE):
        parse_image_properties(IMAGE, properties)


@pytest.mark.parametrize(
    ('group', 'properties', 'expected'),
    [
        (FPGA, {}, FPGA),
        (FPGA, LOADS, {**FPGA, **LOADS}),
        (FPGA, {'accel:color': 'red'}, {**FPGA, 'accel:color': 'red'}),
        ({'accel:color': 'blue', **FPGA}, {'accel:color': 'red'}, None),
        ({'accel:bitstream_name': 'mine', **FPGA}, LOADS, None),
        ({'resources:PGPU': '1', 'accel:fpga': 'FPGA'}, LOADS, None),
        (
            {'trait:CUSTOM_FPGA_1': 'required'},
            LOADS,
            {'trait:CUSTOM_FPGA_1': 'required', **LOADS},
        ),
    ],
)
def test_add_image_properties_extends_unset_keys_of_fpga_groups(
    group: dict[str, str], properties: dict[str, str], expected: dict[str, str] | None
) -> None:
    assert add_image_properties(group, properties) == (
        group if expected is None else expected
    )
