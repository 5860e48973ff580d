# SPDX-License-Identifier: Apache-2.0
"""What a server's image asks for is added to what the profile leaves open."""

import pytest

from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.image_wishes import added, asked

IMAGE = '7c1b8719-3f0e-4cf5-9d4a-2f6d3f1a9e55'
FPGA = {'resources:FPGA': '1'}
LOADS = {'accel:function_id': 'ab' * 16}


def test_only_properties_for_us_are_read() -> None:
    properties = {'hw_disk_bus': 'virtio', 'accel:color': 'red', **LOADS}
    assert asked(IMAGE, properties) == {'accel:color': 'red', **LOADS}
    assert asked(IMAGE, {}) == {}


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
def test_what_no_group_may_say_is_refused_with_the_image(
    properties: dict[str, str],
) -> None:
    with pytest.raises(InvalidInput, match=IMAGE):
        asked(IMAGE, properties)


@pytest.mark.parametrize(
    ('group', 'wishes', 'expected'),
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
def test_a_group_stands_as_it_is_and_only_an_fpga_is_loaded(
    group: dict[str, str], wishes: dict[str, str], expected: dict[str, str] | None
) -> None:
    assert added(group, wishes) == (group if expected is None else expected)
