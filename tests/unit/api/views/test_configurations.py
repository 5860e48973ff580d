# SPDX-License-Identifier: Apache-2.0
"""Tests of configurations of devices in responses."""

from datetime import UTC, datetime

from cyborg_lite.api.microversion import V2_7
from cyborg_lite.api.views.devices import DeviceConfigurationView
from cyborg_lite.model.devices.reconfiguration import (
    DeviceConfiguration,
    Phase,
    Reconfiguration,
    ReconfigurationState,
    SetView,
)
from tests.builders.api_calls import render

TIME = datetime(2026, 11, 21, tzinfo=UTC)
SCHEMA = {'vfs': {'type': 'integer'}}
CHANGE = Reconfiguration(
    'u', 'nic', {'vfs': 8}, ReconfigurationState.RUNNING, 'admin', TIME
)


def test_configuration_view_has_settings() -> None:
    configuration = DeviceConfiguration(
        'd', 'compute-1', (SetView('nic', SCHEMA, ('vfs',)),), ('arq',), (CHANGE,)
    )
    body = render(DeviceConfigurationView(configuration), V2_7)
    (hardware_set,) = body['sets']
    (change,) = body['changes']
    assert [hardware_set['settings'], change['settings']] == [SCHEMA, {'vfs': 8}]
    assert (hardware_set['name'], hardware_set['required']) == ('nic', ['vfs'])
    assert (change['state'], change['phase'], change['reason']) == (
        'running',
        None,
        None,
    )
    assert (body['device_uuid'], body['arqs']) == ('d', ['arq'])
    assert body['links'][0]['href'] == 'http://api/v2/devices/d/configuration'


def test_configuration_view_names_phase_of_change() -> None:
    change = Reconfiguration(
        'u',
        'nic',
        {},
        ReconfigurationState.FAILED,
        'admin',
        TIME,
        phase=Phase.SETUP,
        reason='rc 2',
    )
    configuration = DeviceConfiguration('d', 'compute-1', changes=(change,))
    (view,) = render(DeviceConfigurationView(configuration), V2_7)['changes']
    assert (view['phase'], view['reason']) == ('setup', 'rc 2')
