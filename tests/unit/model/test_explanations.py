# SPDX-License-Identifier: Apache-2.0
"""What a group of a profile asks of one provider."""

from cyborg_lite.model.explanations import Demand

GROUP = {
    'resources:PGPU': '2',
    'trait:CUSTOM_A': 'required',
    'trait:CUSTOM_B': 'forbidden',
    'accel:attach_target': 'none',
}


def test_a_demand_is_classes_and_traits() -> None:
    demand = Demand.of(GROUP)
    assert demand.amounts == (('PGPU', 2),)
    assert demand.classes == ('PGPU',)
    assert demand.required == {'CUSTOM_A'}
    assert demand.forbidden == {'CUSTOM_B'}
    assert demand.handles == 2


def test_groups_that_ask_for_the_same_are_one_demand() -> None:
    """In whatever order, and whatever they say that Placement is not asked."""
    turned = dict(reversed(GROUP.items()))
    assert Demand.of(GROUP) == Demand.of({**turned, 'accel:x': 'y'})
    assert len({Demand.of(GROUP), Demand.of(turned)}) == 1
