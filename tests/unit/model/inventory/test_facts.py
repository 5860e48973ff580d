# SPDX-License-Identifier: Apache-2.0
"""Tests of the flat form of an inventory."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite.model.inventory.facts import (
    build_layout,
    deployable_name,
    device_facts,
    name_suffix,
    product_key,
    walk_deployables,
)
from cyborg_lite.model.limits import REASON_MAX_LENGTH
from tests.builders.reports import card, with_parts

NAMES = st.text(st.characters(codec='ascii'), min_size=1)


@given(NAMES, NAMES)
def test_deployable_name_is_inverse_of_name_suffix(name: str, root_name: str) -> None:
    for full_name in (name, root_name, f'{root_name}_{name}'):
        if not full_name.startswith('_'):
            suffix = name_suffix(full_name, root_name)
            assert deployable_name(suffix, root_name) == full_name


def test_build_layout_uses_identity_suffix_and_key_as_path() -> None:
    device = with_parts(card(1, handles=2), 'region0')
    layout = build_layout({'s': (device, 'serial')})
    assert layout.devices['s'].hardware_id == 'serial'
    assert layout.deployables.keys() == {('s', ''), ('s', '_region0')}
    assert layout.deployables['s', '_region0'].parent == ''
    assert layout.deployables['s', ''].parent is None
    assert layout.handles.keys() == {
        ('s', '', '0000:01:00.0'),
        ('s', '', '0000:01:00.1'),
        ('s', '_region0', '0000:01:00.0/region0'),
    }
    assert layout.attributes['s', '', 'rc'] == 'VGPU'


def test_build_layout_reported_handle_is_not_missing() -> None:
    layout = build_layout({'s': (card(1), 's')})
    assert [handle.missing for handle in layout.handles.values()] == [False]


def test_walk_deployables_yields_parents_first() -> None:
    suffixes = [item[0] for item in walk_deployables(with_parts(card(1), 'a', 'b'))]
    assert suffixes == ['', '_a', '_b']


def test_device_facts_truncate_health_reason() -> None:
    device = replace(card(1), health_reason='x' * 1000)
    assert len(device_facts(device, 's').health_reason) == REASON_MAX_LENGTH


def test_product_key_prefers_product_id_over_model() -> None:
    assert product_key(card(1)) == '10de:1eb8'
    renamed = replace(card(1), model='other')
    assert product_key(renamed) == product_key(card(1))
    without_product_id = replace(card(1), std_board_info={})
    assert product_key(without_product_id) == '10de:Tesla T4'
