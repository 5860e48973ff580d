# SPDX-License-Identifier: Apache-2.0
"""Tests of plans of modes."""

import pytest

from cyborg_lite.model.devices.modes import (
    MODE_NAME,
    DeviceMode,
    DeviceModes,
    DevicePlan,
    OfferedInventory,
    list_inventory,
    plan_modes,
)
from tests.builders.reports import card

_ONE = OfferedInventory('VGPU', 1, ('CUSTOM_A',))
_TWO = OfferedInventory('VGPU', 2, ('CUSTOM_B',))


def test_plan_counts_equal_deployables() -> None:
    """Two providers with the same inventory become one of them and another."""
    modes = DeviceModes('', (_ONE, _ONE), (DeviceMode('b', (_ONE, _TWO)),))
    (plan,) = plan_modes(modes)
    assert (plan.appears, plan.vanishes) == ((_TWO,), (_ONE,))
    assert str(_TWO) == '2 VGPU CUSTOM_B'


@pytest.mark.parametrize(
    ('stored', 'current'), [(None, 'a'), ('b', 'b'), ('c', 'a'), ('d', 'a')]
)
def test_current_mode_prefers_stored_name(stored: str | None, current: str) -> None:
    modes = [DeviceMode(name, (), is_current=name != 'c') for name in 'abc']
    plans = plan_modes(DeviceModes('', (), tuple(modes)))
    plan = DevicePlan('uuid', 'host', '', plans, stored=stored)
    assert plan.current == current
    assert plan.find('d') is None


def test_list_inventory_sorts_traits() -> None:
    (item,) = list_inventory(card(1, handles=2).root)
    assert item.traits == ('CUSTOM_NVIDIA_1EB8', 'OWNER_CYBORG')


@pytest.mark.parametrize('name', ['', 'a b', 'a/b', 'a' * 129, 'a,b', 'ä'])
def test_mode_name_is_limited(name: str) -> None:
    assert MODE_NAME.fullmatch(name) is None
