# SPDX-License-Identifier: Apache-2.0
"""Tests of the keys of groups from which a trait is computed."""

import pytest

from cyborg_lite.errors.profiles import InvalidDeviceProfile
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.profiles.device_profiles import Group
from cyborg_lite.model.profiles.selector_grammar import parse_selector
from cyborg_lite.model.profiles.selector_keys import compile_group, find_selector
from cyborg_lite.model.profiles.selectors import matches
from cyborg_lite.model.traits import DEGRADED

GROUP = {'resources:PGPU': '1', 'accel:selector': 'device.memory_mib >= 40GiB'}
TRAIT = f'trait:{parse_selector(GROUP["accel:selector"]).trait}'


def compile_keys(**keys: str) -> dict[str, str]:
    group = {'resources:PGPU': '1', **{f'accel:{k}': v for k, v in keys.items()}}
    return compile_group('groups[0]', group, typed_attributes.SHARED)


def test_compile_error_names_group_and_character() -> None:
    with pytest.raises(InvalidDeviceProfile) as caught:
        compile_keys(selector='device.memry_mib > 1')
    assert caught.value.text.startswith(
        "Invalid device profile: groups[0]: accel:selector: Character 1, at 'device."
    )


def test_compile_quantities_and_selector_must_all_match() -> None:
    compiled = compile_keys(
        selector='device.numa_node == 0 or device.numa_node == 1', video_ram=' 2 GB'
    )
    assert compiled['accel:video_ram'] == '2GB'
    selector = find_selector(compiled)
    assert selector is not None
    node, small = typed_attributes.NUMA_NODE.of(1), typed_attributes.MEMORY.of(1024)
    large = typed_attributes.MEMORY.of(1908)
    for attributes, expected in (
        ((node,), False),
        ((node, small), False),
        ((node, large), True),
        ((large,), False),
    ):
        by_name = {item.name: item for item in attributes}
        assert matches(selector.expression, by_name) is expected


@pytest.mark.parametrize('text', ['2', '2GHz', 'GB', '-2GB', '2.5GB', '2gb'])
def test_compile_quantity_of_other_unit_is_refused(text: str) -> None:
    with pytest.raises(InvalidDeviceProfile, match='units B, kB, MB, GB, TB, KiB'):
        compile_keys(video_ram=text)


def test_find_selector_ignores_groups_of_earlier_microversions() -> None:
    assert find_selector(GROUP) is None
    assert find_selector({'accel:selector': 'fastest', TRAIT: 'required'}) is None
    assert find_selector({TRAIT: 'required'}) is None


def test_find_selector_ignores_bitstream_of_image() -> None:
    group = {**compile_keys(selector='device.memory_mib > 1'), 'accel:function_id': 'f'}
    selector = find_selector(group)
    assert selector is not None
    assert 'loads_' not in selector.text
    assert find_selector(compile_keys(function_id='f')) is not None


# --- taints ---


TAINT = f'trait:{DEGRADED}'


@pytest.mark.parametrize(
    ('key', 'default', 'is_refused'),
    [
        ('', 'degraded', False),
        ('', 'none', True),
        ('none', 'degraded', True),
        ('degraded', 'none', False),
    ],
)
def test_group_without_toleration_refuses_degraded_devices(
    key: str, default: str, *, is_refused: bool
) -> None:
    group = {'resources:PGPU': '1', **({'accel:tolerates': key} if key else {})}
    compiled = compile_group('groups[0]', group, (), default)
    assert (compiled.get(TAINT) == 'forbidden') is is_refused
    assert Group.parse(compiled).requirements.forbidden == (
        frozenset({DEGRADED}) if is_refused else frozenset()
    )


def test_changed_toleration_replaces_trait() -> None:
    compiled = compile_keys(tolerates='none')
    changed = {**compiled, 'accel:tolerates': 'degraded'}
    assert TAINT not in compile_group('groups[0]', changed, ())
