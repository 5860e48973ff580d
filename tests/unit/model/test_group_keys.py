# SPDX-License-Identifier: Apache-2.0
"""The keys of a group: which are legal, and in what form they are kept."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite.exceptions import InvalidDeviceProfile
from cyborg_lite.model import group_keys
from cyborg_lite.model.device_profiles import Limits

LIMITS = Limits()
IMAGE = 'd5ca2f11-3108-4426-a11c-a959987565df'


def read(key: object, value: object) -> tuple[str, str] | None:
    return group_keys.read('groups[0]', key, value, LIMITS)


def refusal(key: object, value: object) -> str:
    with pytest.raises(InvalidDeviceProfile) as caught:
        read(key, value)
    return caught.value.text


@pytest.mark.parametrize('name', ['FPGA', 'GPU', 'VGPU', 'PGPU', 'CUSTOM_X_1'])
def test_a_known_or_custom_class_is_kept(name: str) -> None:
    assert read(f'resources:{name}', '1') == (f'resources:{name}', '1')


@pytest.mark.parametrize(
    ('written', 'kept'),
    [
        ('resources: FPGA ', 'resources:FPGA'),
        ('resources:fpga', 'resources:FPGA'),
        ('resources:custom-lower-case', 'resources:CUSTOM_LOWER_CASE'),
        ('trait: CUSTOM_X ', 'trait:CUSTOM_X'),
        ('trait:Custom-X', 'trait:CUSTOM_X'),
    ],
)
def test_names_are_kept_as_placement_has_them(written: str, kept: str) -> None:
    value = 1 if written.startswith('resources') else 'required'
    entry = read(written, value)
    assert entry is not None
    assert entry[0] == kept


@pytest.mark.parametrize(
    'name',
    [
        '',
        'CUSTOM_',
        'VCPU',
        'CUSTOM_A B',
        'CUSTOM_A.B',
        'CUSTOM_\u00df',  # becomes SS in upper case
        'CUSTOM_\u0131',  # becomes I
        'CUSTOM_A\nB',
        'CUSTOM_' + 'X' * 249,
    ],
)
def test_a_name_that_placement_would_refuse_is_refused_now(name: str) -> None:
    assert 'CUSTOM_...' in refusal(f'resources:{name}', 1)
    assert 'CUSTOM_...' in refusal(f'trait:{name}', 'required')


def test_the_longest_name_of_placement_is_legal() -> None:
    name = 'CUSTOM_' + 'X' * 248
    assert read(f'trait:{name}', 'forbidden') == (f'trait:{name}', 'forbidden')


@pytest.mark.parametrize(
    ('amount', 'kept'),
    [(1, '1'), ('1', '1'), (256, '256'), ('256', '256'), ('007', '7')],
)
def test_an_amount_is_kept_as_a_string(amount: object, kept: str) -> None:
    assert read('resources:FPGA', amount) == ('resources:FPGA', kept)


@pytest.mark.parametrize(
    'amount',
    [
        0,
        -1,
        257,
        '0',
        '-1',
        '257',
        '',
        ' 1',
        '1\n',
        '+1',
        '1.0',
        '1e1',
        1.0,
        1.5,
        True,
        False,
        None,
        [],
        {},
        [1],
        10**40,
        '1' * 40,
        '\u0663',  # a digit, to int()
        '1_0',
    ],
)
def test_an_amount_is_a_whole_number_within_the_limit(amount: object) -> None:
    reason = refusal('resources:FPGA', amount)
    assert 'groups[0]: resources:FPGA must be a whole number from 1 to 256' in reason


@pytest.mark.parametrize('value', ['', 'Required', 'optional', None, 1, True, [], {}])
def test_a_trait_is_required_or_forbidden(value: object) -> None:
    assert 'required or forbidden' in refusal('trait:CUSTOM_X', value)


@pytest.mark.parametrize(
    'key',
    ['', 'FPGA', 'resource:FPGA', 'resources', 'resources1:FPGA', ' trait:CUSTOM_X'],
)
def test_a_key_starts_with_one_of_three_words(key: str) -> None:
    assert 'must start with' in refusal(key, '1')


@pytest.mark.parametrize('key', ['', 'a b', 'a.b', 'a:b', 'a/b', '\u00e9', 'a\n'])
def test_the_name_of_an_accel_key_has_few_characters(key: str) -> None:
    assert 'after accel:' in refusal(f'accel:{key}', 'x')


@given(st.text(st.characters(exclude_categories=['Cs'], exclude_characters='\0')))
def test_the_value_of_an_unknown_accel_key_is_kept_as_it_is(value: str) -> None:
    value = value[: LIMITS.value]
    assert read('accel:Some_key-1', value) == ('accel:Some_key-1', value)


@pytest.mark.parametrize('value', [1, True, [], {}, 'x' * 256, 'a\0b', '\ud800'])
def test_the_value_of_an_accel_key_is_a_storable_string(value: object) -> None:
    assert 'at most 255 characters' in refusal('accel:x', value)


@pytest.mark.parametrize('key', ['accel:x', 'accel:bitstream_id'])
def test_null_is_as_good_as_no_accel_key(key: str) -> None:
    assert read(key, None) is None


@pytest.mark.parametrize(
    ('key', 'value', 'kept'),
    [
        ('bitstream_id', IMAGE, IMAGE),
        ('bitstream_id', IMAGE.upper().replace('-', ''), IMAGE),
        ('bitstream_name', 'a-b_c.2.bit', 'a-b_c.2.bit'),
        ('function_id', '3AFB', '3AFB'),
        ('function_id', IMAGE, IMAGE),
        ('function_name', 'net-work_1', 'net-work_1'),
        ('attach_target', 'VM', 'VM'),
        ('attach_target', 'host', 'host'),
        ('attach_target', 'none', 'none'),
    ],
)
def test_a_known_accel_key_takes_its_own_values(
    key: str, value: str, kept: str
) -> None:
    assert read(f'accel:{key}', value) == (f'accel:{key}', kept)


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
    ],
)
def test_a_known_accel_key_takes_no_other_values(key: str, value: str) -> None:
    assert f'accel:{key} must be' in refusal(f'accel:{key}', value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
KEYS = st.text(st.characters()) | st.builds(
    '{}:{}'.format,
    st.sampled_from(['resources', 'trait', 'accel']),
    st.sampled_from(['FPGA', 'CUSTOM_X', 'bitstream_id']) | st.text(st.characters()),
)


@given(KEYS, JSON)
def test_any_key_is_kept_or_refused_by_name(key: str, value: Any) -> None:
    reason = ''
    try:
        entry = read(key, value)
    except InvalidDeviceProfile as error:
        entry, reason = None, error.text
    assert not reason or 'groups[0]' in reason
    assert reason.isprintable()
    # What was kept is kept again as it is.
    assert entry is None or read(*entry) == entry


def test_a_standard_trait_is_legal_where_the_limits_name_it() -> None:
    limits = Limits(standard_traits=frozenset({'HW_GPU_API_VULKAN'}))
    kept = group_keys.read('groups[0]', 'trait:hw-gpu-api-vulkan', 'required', limits)
    assert kept == ('trait:HW_GPU_API_VULKAN', 'required')
    with pytest.raises(InvalidDeviceProfile, match='os-traits'):
        group_keys.read('groups[0]', 'trait:HW_OTHER', 'required', limits)
    assert 'CUSTOM_...' in refusal('trait:HW_GPU_API_VULKAN', 'required')
