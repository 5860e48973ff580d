# SPDX-License-Identifier: Apache-2.0
"""Tests of modes of devices in responses."""

from cyborg_lite.api.views.devices import DeviceModesView
from cyborg_lite.model.devices.modes import (
    DevicePlan,
    ModeChange,
    ModePlan,
    OfferedInventory,
)
from tests.builders.api_calls import render

WHOLE = OfferedInventory('PGPU', 1, ('CUSTOM_A',))
PARTS = OfferedInventory('VGPU', 7)
PLANS = (
    ModePlan('whole', is_current=True),
    ModePlan('7x1g.5gb', is_current=False, appears=(PARTS,), vanishes=(WHOLE,)),
)


def test_modes_view_shows_effect_of_each_mode() -> None:
    plan = DevicePlan('d', 'compute-1', '0000:3b:00.0', PLANS, arqs=('arq',))
    body = render(DeviceModesView(plan))
    undivided, parts = body['modes']
    assert (undivided['is_current'], undivided['appears'], undivided['vanishes']) == (
        True,
        [],
        [],
    )
    assert parts['appears'] == [{'resource_class': 'VGPU', 'total': 7, 'traits': []}]
    assert parts['vanishes'][0]['traits'] == ['CUSTOM_A']
    assert (body['current'], body['arqs'], body['change']) == ('whole', ['arq'], None)


def test_modes_view_shows_failed_change() -> None:
    change = ModeChange('7x1g.5gb', 'failed', 'it has vGPUs')
    plan = DevicePlan('d', 'compute-1', '0000:3b:00.0', PLANS, change=change)
    assert render(DeviceModesView(plan))['change'] == {
        'mode': '7x1g.5gb',
        'state': 'failed',
        'reason': 'it has vGPUs',
    }
