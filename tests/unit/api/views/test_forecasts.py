# SPDX-License-Identifier: Apache-2.0
"""Tests of effects of changes of hardware in responses."""

from typing import Any, Final

from cyborg_lite.api.views.forecasts import ForecastView
from cyborg_lite.model.forecasts import (
    ChangeEffect,
    Forecast,
    ForecastResult,
    ProfileForecast,
)
from cyborg_lite.model.modes import OfferedInventory
from cyborg_lite.model.server_capacity import HostCapacity, ProfileCapacity, Shortage
from tests.builders.api_calls import render

UUID: Final = '5c9a477a-d3d4-426a-9e9c-b2660917780e'
SHORTAGE: Final = Shortage((0,), ('PGPU',), (), 'No unit is free.', 1)
BEFORE: Final = ProfileCapacity(3, (HostCapacity('compute-1', 3, SHORTAGE),), SHORTAGE)


def build_body(forecast: Forecast) -> Any:
    return render(ForecastView.build(forecast))


def test_empty_forecast_has_empty_lists() -> None:
    assert build_body(Forecast()) == {'changes': [], 'device_profiles': []}


def test_effects_show_device_and_inventory() -> None:
    gpu, vgpu = OfferedInventory('PGPU', 1, ('A',)), OfferedInventory('VGPU', 8)
    effect = ChangeEffect(
        'compute-1', UUID, 'vgpu', (vgpu,), (gpu,), ('It is in use.',)
    )
    changes = build_body(Forecast((effect, ChangeEffect('compute-2'))))['changes']
    first, second = changes
    assert (first['hostname'], first['device']) == ('compute-1', UUID)
    assert (first['mode'], first['warnings']) == ('vgpu', ['It is in use.'])
    for key, offer in (('appears', vgpu), ('vanishes', gpu)):
        (item,) = first[key]
        assert item['resource_class'] == offer.resource_class
        assert (item['total'], item['traits']) == (offer.total, list(offer.traits))
    assert second == {
        'hostname': 'compute-2',
        'device': None,
        'mode': None,
        'appears': [],
        'vanishes': [],
        'warnings': [],
    }


def test_profile_shows_capacity_before_and_after() -> None:
    after = ProfileCapacity(0, (), None)
    forecast = ProfileForecast(UUID, 'gpu', ForecastResult.LOSES, BEFORE, after)
    (body,) = build_body(Forecast(profiles=(forecast,)))['device_profiles']
    assert (body['device_profile_uuid'], body['device_profile_name']) == (UUID, 'gpu')
    assert (body['result'], body['reasons']) == ('loses', [])
    assert (body['before']['servers'], body['after']['servers']) == (3, 0)
    assert [host['hostname'] for host in body['before']['hosts']] == ['compute-1']


def test_unknown_capacity_of_new_profile_is_null() -> None:
    reasons = ('groups[0]: The value is not known.',)
    unknown = ForecastResult.UNKNOWN
    forecast = ProfileForecast('', '', unknown, BEFORE, None, reasons)
    (body,) = build_body(Forecast(profiles=(forecast,)))['device_profiles']
    assert body['device_profile_uuid'] is body['device_profile_name'] is None
    assert (body['result'], body['after']) == ('unknown', None)
    assert body['reasons'] == list(reasons)
