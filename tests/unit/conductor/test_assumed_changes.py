# SPDX-License-Identifier: Apache-2.0
"""Tests of what vanishes and appears with a change of hardware."""

from dataclasses import replace

import pytest

from cyborg_lite.conductor.assumed_changes import (
    add_devices,
    change_mode,
    remove_device,
)
from cyborg_lite.db.present_hardware import PresentDevice
from cyborg_lite.model.device_errors import ModeRefused
from cyborg_lite.model.explanations import ReasonCode
from cyborg_lite.model.forecasts import NewDevice
from cyborg_lite.model.inventory import HandleType
from cyborg_lite.model.jobs import JobState
from cyborg_lite.model.modes import (
    DevicePlan,
    ModeChange,
    ModePlan,
    OfferedInventory,
)

SMALL, LARGE = OfferedInventory('VGPU', 4), OfferedInventory('VGPU', 1)
DEVICE = PresentDevice(
    'd', 'compute-1', (), (('a', SMALL), ('b', SMALL), ('c', LARGE)), is_reliable=True
)
PLAN = DevicePlan('d', 'compute-1', '0000:3b:00.0', (ModePlan('m', False),))


def test_remove_device_takes_all_providers() -> None:
    change = remove_device(DEVICE)
    assert change.removed == ('a', 'b', 'c')
    assert change.effect.vanishes == (SMALL, SMALL, LARGE)
    assert (change.added, change.effect.warnings) == ((), ())


def test_remove_device_names_first_users_only() -> None:
    used = replace(DEVICE, arqs=tuple(f'arq{number}' for number in range(12)))
    (text,) = remove_device(used).effect.warnings
    assert 'arq9 and 2 more. They lose the device.' in text


def test_change_mode_takes_vanishing_providers_only() -> None:
    plan = replace(PLAN, plans=(ModePlan('m', False, (LARGE,), (SMALL,)),))
    change = change_mode(DEVICE, plan, 'm', {})
    assert change.removed == ('a',)
    (provider,) = change.added
    assert (provider.capacity.total, provider.capacity.hostname) == (1, 'compute-1')
    assert not provider.has_known_handles


def test_change_mode_keeps_maintenance() -> None:
    plan = replace(PLAN, plans=(ModePlan('m', False, (LARGE,), ()),))
    closed = replace(DEVICE, closed=ReasonCode.MAINTENANCE, closed_text='A fan.')
    (provider,) = change_mode(closed, plan, 'm', {}).added
    assert provider.capacity.closed is ReasonCode.MAINTENANCE


@pytest.mark.parametrize(
    ('plan', 'text'),
    [
        (PLAN, 'no such mode'),
        (replace(PLAN, change=ModeChange('x', JobState.RUNNING)), 'changed already'),
        (
            replace(PLAN, plans=(ModePlan('m', False, (), (LARGE, LARGE)),)),
            'present inventory',
        ),
    ],
)
def test_change_mode_that_is_not_known_is_refused(plan: DevicePlan, text: str) -> None:
    mode = 'z' if text == 'no such mode' else 'm'
    with pytest.raises(ModeRefused, match=text):
        change_mode(DEVICE, plan, mode, {})


def test_change_mode_after_failed_change_is_possible() -> None:
    plan = replace(PLAN, change=ModeChange('x', JobState.FAILED))
    assert change_mode(DEVICE, plan, 'm', {}).removed == ()


def test_add_devices_builds_provider_per_class_and_device() -> None:
    new = NewDevice('h', {'PGPU': 1, 'VGPU': 4}, handle_type=HandleType.MDEV, count=2)
    change = add_devices(0, new, {'h'}, {'h': 'up'})
    names = [provider.capacity.resource_class for provider in change.added]
    assert names == ['PGPU', 'VGPU'] * 2
    assert len({provider.capacity.rp_uuid for provider in change.added}) == 4
    assert all(provider.capacity.has_mdev for provider in change.added)
    assert all(provider.is_reliable for provider in change.added)


@pytest.mark.parametrize('state', ['down', None])
def test_add_devices_without_agent_matches_no_selector(state: str | None) -> None:
    states = {} if state is None else {'h': state}
    (provider,) = add_devices(0, NewDevice('h', {'PGPU': 1}), {'h'}, states).added
    assert not provider.is_reliable
    assert (provider.capacity.closed is not None) == (state == 'down')
