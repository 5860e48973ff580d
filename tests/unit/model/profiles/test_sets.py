# SPDX-License-Identifier: Apache-2.0
"""Tests of sets of groups, which become one group each."""

from collections.abc import Mapping
from typing import Any

import pytest

from cyborg_lite.errors.profiles import InvalidDeviceProfile
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.profiles.device_profiles import Group, Limits, ProfileChange
from cyborg_lite.model.profiles.grammar import parse_profile_change
from cyborg_lite.model.profiles.selector_grammar import parse_selector
from cyborg_lite.model.profiles.selector_keys import find_selector

SETS = Limits(attributes=typed_attributes.SHARED)
CARD = f'trait:{parse_selector("device.same_card == true").trait}'


def parse(*groups: Mapping[str, Any]) -> tuple[Mapping[str, str], ...]:
    """Return the groups in the form that is stored."""
    change: ProfileChange = parse_profile_change({'groups': [*groups]}, SETS)
    assert change.groups is not None
    return change.groups


def gpu(units: int = 1, **keys: str) -> dict[str, Any]:
    return {'resources:PGPU': units, **{f'accel:{k}': v for k, v in keys.items()}}


def test_set_becomes_one_group_at_first_position() -> None:
    first = {**gpu(same='card'), 'trait:CUSTOM_A': 'required'}
    second = {**gpu(2, same='card'), 'trait:CUSTOM_B': 'forbidden'}
    groups = parse(gpu(4), first, gpu(8), second)
    amounts = [Group.parse(group).requirements.total for group in groups]
    assert amounts == [4, 3, 8]
    assert groups[1] == {
        'resources:PGPU': '3',
        'accel:same': 'card',
        'trait:CUSTOM_A': 'required',
        'trait:CUSTOM_B': 'forbidden',
        CARD: 'required',
    }


def test_merged_group_stays_the_same() -> None:
    groups = parse(gpu(same='card'), gpu(same='card'))
    assert parse(*groups) == groups


@pytest.mark.parametrize(
    ('second', 'fault'),
    [
        ({'resources:VGPU': 1, 'accel:same': 'card'}, 'must have one resource class'),
        (gpu(same='card', attach_target='host'), 'accel:attach_target must be equal'),
        (
            gpu(same='card', selector='device.memory_mib > 1'),
            'accel:selector must be equal',
        ),
        (
            {**gpu(same='card'), 'trait:CUSTOM_A': 'forbidden'},
            'trait:CUSTOM_A must not have another value',
        ),
        (gpu(same='rack'), 'accel:same must be one of card, fabric, numa_node'),
    ],
)
def test_set_that_no_provider_can_serve_is_refused(
    second: dict[str, str], fault: str
) -> None:
    first = {**gpu(same='card'), 'trait:CUSTOM_A': 'required'}
    with pytest.raises(InvalidDeviceProfile, match=fault) as error:
        parse(first, second)
    assert 'groups[1]' in str(error.value)


def test_several_classes_in_one_group_of_set_are_refused() -> None:
    group = {**gpu(same='card'), 'resources:VGPU': '1'}
    with pytest.raises(InvalidDeviceProfile, match='Nova cannot relate'):
        parse(group)


def test_selector_and_set_have_one_trait() -> None:
    (group,) = parse(gpu(same='card', selector='device.memory_mib > 1'))
    selector = find_selector(group)
    assert selector is not None
    text = '(device.memory_mib > 1) and device.same_card == true'
    assert selector.trait == parse_selector(text).trait
