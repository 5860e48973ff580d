# SPDX-License-Identifier: Apache-2.0
"""Properties of the groups of a profile that extends another one."""

from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite.exceptions import InvalidDeviceProfile
from cyborg_lite.model.device_profiles import DeviceProfile, Limits
from cyborg_lite.model.own_groups import (
    flatten_groups,
    join_alternatives,
    load_own_groups,
    overlay_groups,
    parse_own_groups,
)
from cyborg_lite.model.profile_groups import parse_groups
from tests.builders.alternatives import build_profile
from tests.builders.selector_fleets import KNOWN

LIMITS: Final = Limits(inheritance=True, alternatives=8, attributes=KNOWN, sets=True)
KEYS: Final = {
    'resources:PGPU': st.integers(1, 9).map(str),
    'resources:CUSTOM_NIC': st.integers(1, 9).map(str),
    'trait:CUSTOM_A': st.sampled_from(['required', 'forbidden']),
    'trait:CUSTOM_B': st.sampled_from(['required', 'forbidden']),
    'accel:memory': st.sampled_from(['1GB', '2GB', '4096MiB']),
    'accel:selector': st.sampled_from(['device.numa_node == 1', 'device.pcie == 3']),
    'accel:cleaning': st.sampled_from(['never', 'after-use']),
}
OPTIONAL: Final = {key: KEYS[key] for key in KEYS if key != 'resources:PGPU'}
GROUP: Final = st.fixed_dictionaries(
    {'resources:PGPU': KEYS['resources:PGPU']}, optional=OPTIONAL
)
OWN_GROUP: Final = st.fixed_dictionaries(
    {}, optional={key: values | st.none() for key, values in KEYS.items()}
)


def build(groups: list[dict[str, Any]]) -> DeviceProfile:
    """Return a profile with compiled groups."""
    limits = replace(LIMITS, attributes=(), attributes_checked=True)
    parsed, alternatives = parse_groups(groups, limits)
    return replace(build_profile(({},)), groups=parsed, alternatives=alternatives)


def parse(*groups: object) -> list[dict[str, Any]]:
    """Return own groups as they are stored."""
    limits = replace(LIMITS, attributes=None)
    return load_own_groups(parse_own_groups(list(groups), limits))


@given(st.lists(GROUP, min_size=1, max_size=3), st.lists(OWN_GROUP, max_size=4))
def test_flatten_twice_equals_flatten_once(
    groups: list[dict[str, Any]], own: list[dict[str, Any]]
) -> None:
    parent, own_groups = build(groups), parse(*own)
    try:
        once = flatten_groups(parent, own_groups, LIMITS)
    except InvalidDeviceProfile:
        return
    child = replace(parent, groups=once.groups, alternatives=once.alternatives)
    assert flatten_groups(child, own_groups, LIMITS) == once


@given(st.lists(GROUP, min_size=1, max_size=3), st.integers(0, 5))
def test_child_without_own_keys_equals_parent(
    groups: list[dict[str, Any]], count: int
) -> None:
    parent = build(groups)
    flat = flatten_groups(parent, parse(*[{}] * count), LIMITS)
    assert (flat.groups, flat.alternatives) == (parent.groups, parent.alternatives)


@given(GROUP, OWN_GROUP)
def test_each_key_is_own_or_inherited(
    group: dict[str, Any], own: dict[str, Any]
) -> None:
    """Compare with the definition: an own key wins, and null removes the key."""
    parent = build([group])
    try:
        flat = flatten_groups(parent, parse(own), LIMITS)
    except InvalidDeviceProfile:
        keys = {**group, **own}
        assert not any(keys.get(key) for key in KEYS if key.startswith('resources:'))
        return
    plain = {key: value for key, value in flat.groups[0].items() if '_SEL_' not in key}
    merged = {**group, **own}
    assert plain == {key: value for key, value in merged.items() if value is not None}
    assert flat.groups == build([plain]).groups


@given(st.lists(GROUP, min_size=1, max_size=2), GROUP)
def test_further_group_is_appended(
    groups: list[dict[str, Any]], further: dict[str, Any]
) -> None:
    parent = build(groups)
    own_groups = parse(*[{} for _ in groups], further)
    flat = flatten_groups(parent, own_groups, LIMITS)
    assert flat.groups == (*parent.groups, *build([further]).groups)


def test_parent_in_former_form_is_inherited_unchanged() -> None:
    """Earlier microversions accepted groups that later ones refuse."""
    former = {'resources:PGPU': '1', 'accel:same': 'rack', 'accel:selector': 'x ='}
    parent = replace(build_profile(({},)), groups=(former,))
    assert flatten_groups(parent, [], LIMITS).groups == (former,)
    with pytest.raises(InvalidDeviceProfile):
        flatten_groups(parent, parse({'trait:CUSTOM_A': 'required'}), LIMITS)
    own = {'accel:same': None, 'accel:selector': None}
    assert flatten_groups(parent, [own], LIMITS).groups == ({'resources:PGPU': '1'},)


def test_renamed_key_replaces_former_name() -> None:
    parent = {'resources:FPGA': '1', 'accel:function_uuid': 'a'}
    (group,) = overlay_groups([parent], [{'accel:function_id': 'b'}])
    assert group == {'resources:FPGA': '1', 'accel:function_id': 'b'}


def test_appended_member_joins_set_of_parent() -> None:
    member = {'resources:PGPU': '1', 'accel:same': 'card'}
    parent = build([member, member])
    (group,) = flatten_groups(parent, parse({}, member), LIMITS).groups
    assert group['resources:PGPU'] == '3'


def test_standard_trait_of_parent_is_accepted() -> None:
    group = {'resources:PGPU': '1', 'trait:HW_CPU_X86_VMX': 'required'}
    parent = replace(build_profile(({},)), groups=(group,))
    flat = flatten_groups(parent, parse({'resources:PGPU': '2'}), LIMITS)
    assert flat.groups == ({**group, 'resources:PGPU': '2'},)


def test_join_alternatives_adds_key_where_present() -> None:
    first, second = {'resources:PGPU': '1'}, {'resources:VGPU': '1'}
    profile = build_profile((first, second), (second,))
    assert join_alternatives(profile) == [{**first, 'alternatives': [second]}, second]


def test_parse_normalizes_names_of_removed_keys() -> None:
    own = parse({'resources:custom-nic': None, 'trait: custom-a ': None})
    assert own == [{'resources:CUSTOM_NIC': None, 'trait:CUSTOM_A': None}]


@pytest.mark.parametrize(
    'group',
    [
        {'resources:pgpu': 1, 'resources:PGPU': None},
        {'resources:VCPU': 1},
        {'trait:CUSTOM_A': 'maybe'},
        {'alternatives': [{}]},
        {'alternatives': [{'resources:PGPU': '1'}] * 8},
        {'x': None},
        {'trait:CUSTOM_CYBORG_SEL_A': 'required'},
    ],
)
def test_parse_refuses_invalid_own_group(group: dict[str, Any]) -> None:
    with pytest.raises(InvalidDeviceProfile, match=r'own_groups\[0\]'):
        parse_own_groups([group], LIMITS)
