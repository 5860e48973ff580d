# SPDX-License-Identifier: Apache-2.0
"""Tests of the keys and values of a group and their normal form."""

from typing import Any

import pytest

from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.profiles import InvalidDeviceProfile
from cyborg_lite.model.profiles import group_keys
from cyborg_lite.model.profiles.device_profiles import Limits
from cyborg_lite.model.profiles.group_keys import (
    add_image_properties,
    parse_image_properties,
)

LIMITS = Limits()


def read(key: object, value: object) -> tuple[str, str] | None:
    return group_keys.parse_entry('groups[0]', key, value, LIMITS)


def read_error(key: object, value: object) -> str:
    with pytest.raises(InvalidDeviceProfile) as caught:
        read(key, value)
    return caught.value.text


@pytest.mark.parametrize('name', ['FPGA', 'GPU', 'VGPU', 'PGPU', 'CUSTOM_X_1'])
def test_parse_entry_accepts_standard_and_custom_classes(name: str) -> None:
    assert read(f'resources:{name}', '1') == (f'resources:{name}', '1')


@pytest.mark.parametrize(
    'name',
    [
        '',
        'CUSTOM_',
        'VCPU',
        'CUSTOM_A B',
        'CUSTOM_A.B',
        'CUSTOM_\u00df',  # is SS in upper case
        'CUSTOM_\u0131',  # is I in upper case
        'CUSTOM_A\nB',
        'CUSTOM_' + 'X' * 249,
    ],
)
def test_parse_entry_rejects_name_invalid_in_placement(name: str) -> None:
    assert 'CUSTOM_...' in read_error(f'resources:{name}', 1)
    assert 'CUSTOM_...' in read_error(f'trait:{name}', 'required')


def test_parse_entry_accepts_name_of_maximum_length() -> None:
    name = 'CUSTOM_' + 'X' * 248
    assert read(f'trait:{name}', 'forbidden') == (f'trait:{name}', 'forbidden')


@pytest.mark.parametrize(
    ('amount', 'expected'),
    [(1, '1'), ('1', '1'), (256, '256'), ('256', '256'), ('007', '7')],
)
def test_parse_entry_returns_amount_as_string(amount: object, expected: str) -> None:
    assert read('resources:FPGA', amount) == ('resources:FPGA', expected)


NO_AMOUNTS: list[Any] = [0, -1, 257, 1.0, 1.5, 10**40, True, False, None, [], {}, [1]]
# int() accepts the digit U+0663.
NO_AMOUNTS += ['0', '-1', '257', '', ' 1', '1\n', '+1', '1.0', '1e1', '\u0663', '1_0']
NO_PREFIXES = ('', 'FPGA', 'resource:FPGA', 'resources', 'resources1:FPGA', ' trait:X')
NO_TRAITS: list[Any] = ['', 'Required', 'optional', None, 1, True, [], {}]
NO_NAMES = ('', 'a b', 'a.b', 'a:b', 'a/b', '\u00e9', 'a\n')
NO_VALUES: list[Any] = [1, True, [], {}, 'x' * 256, 'a\0b', '\ud800']


@pytest.mark.parametrize(
    ('key', 'value', 'reason'),
    [
        *(('resources:FPGA', item, 'number from 1 to 256') for item in NO_AMOUNTS),
        *(('trait:CUSTOM_X', item, 'required or forbidden') for item in NO_TRAITS),
        *((key, '1', 'must start with') for key in NO_PREFIXES),
        *((f'accel:{name}', 'x', 'after accel:') for name in NO_NAMES),
        *(('accel:x', item, 'at most 255 characters') for item in NO_VALUES),
    ],
)
def test_parse_entry_invalid_names_rule(key: str, value: object, reason: str) -> None:
    assert reason in read_error(key, value)


@pytest.mark.parametrize('key', ['accel:x', 'accel:bitstream_id'])
def test_parse_entry_null_accel_value_returns_none(key: str) -> None:
    assert read(key, None) is None


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('bitstream_id', 'my-image'),
        ('bitstream_id', ''),
        ('bitstream_name', ''),
        ('bitstream_name', 'a b'),
        ('function_id', 'a.b'),
        ('function_name', 'a.b'),
        ('function_name', ''),
        ('attach_target', 'vm'),
        ('attach_target', ''),
        ('cleaning', 'always'),
    ],
)
def test_parse_entry_rejects_invalid_value_of_known_accel_key(
    key: str, value: str
) -> None:
    assert f'accel:{key} must be' in read_error(f'accel:{key}', value)


KNOWN = Limits(accel_keys=group_keys.list_accel_names() | {'vendor-x'})


@pytest.mark.parametrize(
    ('key', 'text'),
    [
        ('bitsream_id', 'no known key; did you mean accel:bitstream_id?'),
        ('vendor_x', 'no known key; did you mean accel:vendor-x?'),
        ('zzzz', 'accel:zzzz is no known key'),
    ],
)
def test_parse_entry_refuses_unknown_key_with_nearest(key: str, text: str) -> None:
    with pytest.raises(InvalidDeviceProfile) as caught:
        group_keys.parse_entry('groups[0]', f'accel:{key}', None, KNOWN)
    assert text in caught.value.text
    assert read(f'accel:{key}', 'a') == (f'accel:{key}', 'a')


# --- properties of an instance image ---


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
