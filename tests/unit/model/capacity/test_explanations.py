# SPDX-License-Identifier: Apache-2.0
"""Tests of the Placement requirements of a group."""

from cyborg_lite.model.profiles.device_profiles import Group

GROUP = {
    'resources:PGPU': '2',
    'trait:CUSTOM_A': 'required',
    'trait:CUSTOM_B': 'forbidden',
    'accel:attach_target': 'none',
}


def test_requirements_have_amounts_and_traits() -> None:
    requirements = Group.parse(GROUP).requirements
    assert requirements.amounts == (('PGPU', 2),)
    assert requirements.resource_classes == ('PGPU',)
    assert requirements.required == {'CUSTOM_A'}
    assert requirements.forbidden == {'CUSTOM_B'}
    assert requirements.handle_count == 2


def test_requirements_of_equal_groups_are_equal() -> None:
    """The order of the keys and the ``accel:`` keys do not count."""
    reversed_group = dict(reversed(GROUP.items()))
    assert (
        Group.parse(GROUP).requirements
        == Group.parse({**reversed_group, 'accel:x': 'y'}).requirements
    )
    assert (
        len({Group.parse(GROUP).requirements, Group.parse(reversed_group).requirements})
        == 1
    )
