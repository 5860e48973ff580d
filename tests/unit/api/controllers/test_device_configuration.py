# SPDX-License-Identifier: Apache-2.0
"""Tests of the configuration of devices at microversion 2.7."""

from typing import Any

import pytest

from cyborg_lite.errors.devices import ReconfigurationRefused
from cyborg_lite.model.devices.reconfiguration import DeviceConfiguration, SetView
from tests.builders.device_rows import add_device
from tests.support.api.conversation import Client
from tests.support.api.reconfiguration import start_change

ARQ = 'd5ca2f11-3108-4426-a11c-a959987565df'
_SETTINGS = {'vgpus': {'type': 'integer', 'maximum': 16}}


@pytest.fixture
def newest(client: Client) -> Client:
    return client.at('2.7')


def add_configuration(client: Client, *arqs: str) -> str:
    """Add a device with a hardware set; return its path."""
    device = add_device(client.conductor.database)
    sets = (SetView('nvidia', _SETTINGS, ('vgpus',)),)
    configuration = DeviceConfiguration(device.uuid, 'compute-1', sets, arqs)
    client.conductor.answers['show_configuration'] = configuration
    return f'/devices/{device.uuid}'


# Any: JSON values, also invalid ones.
def patch(value: Any) -> list[dict[str, Any]]:
    return [{'op': 'replace', 'path': '/configuration', 'value': value}]


def test_show_configuration_has_sets_and_users(newest: Client) -> None:
    path = add_configuration(newest, ARQ)
    view = newest.get(f'{path}/configuration').json
    [hardware_set] = view['sets']
    assert (hardware_set['name'], hardware_set['required']) == ('nvidia', ['vgpus'])
    assert hardware_set['settings'] == _SETTINGS
    assert (view['arqs'], view['changes']) == ([ARQ], [])


def test_patch_configuration_starts_change(newest: Client) -> None:
    path = add_configuration(newest)
    start_change(newest.conductor)
    answer = newest.patch(path, patch({'set': 'nvidia', 'settings': {'vgpus': 4}}))
    assert answer.status == 202
    (request,) = newest.conductor.list_arguments('change_configuration', 'request')
    assert (request.hardware_set, request.settings) == ('nvidia', {'vgpus': 4})
    [change] = answer.json['changes']
    assert (change['set'], change['state']) == ('nvidia', 'waiting')
    assert change['settings'] == {'vgpus': 4}


def test_patch_configuration_used_device_is_refused(newest: Client) -> None:
    path, reason = add_configuration(newest, ARQ), f'ARQs use it: {ARQ}.'
    refusal = ReconfigurationRefused(uuid=ARQ, name='nvidia', reason=reason)
    newest.conductor.answers['change_configuration'] = refusal
    answer = newest.patch(path, patch({'set': 'nvidia'}))
    assert (answer.status, ARQ in answer.fault) == (409, True)


@pytest.mark.parametrize(
    'value',
    [
        'nvidia',
        {},
        {'set': '../nvidia'},
        {'set': 'nvidia', 'inventory': '/etc/hosts'},
        {'set': 'nvidia', 'settings': []},
        {'set': 'nvidia', 'settings': {f'x{number}': 1 for number in range(33)}},
    ],
)
# Any: JSON values.
def test_patch_configuration_invalid_value_is_refused(
    newest: Client, value: Any
) -> None:
    path = add_configuration(newest)
    assert newest.patch(path, patch(value)).status == 400


def test_patch_configuration_with_other_path_is_refused(newest: Client) -> None:
    path = add_configuration(newest)
    status = {'op': 'replace', 'path': '/status', 'value': 'enabled'}
    body = [*patch({'set': 'nvidia'}), status]
    assert newest.patch(path, body).status == 400


@pytest.mark.parametrize('path', ['/status', '/mode'])
def test_patch_other_path_with_object_is_refused(newest: Client, path: str) -> None:
    device = add_configuration(newest)
    body = [{'op': 'replace', 'path': path, 'value': {'set': 'nvidia'}}]
    assert newest.patch(device, body).status == 400


def test_configuration_older_microversion_is_refused(client: Client) -> None:
    path = add_configuration(client)
    older = client.at('2.6')
    assert older.patch(path, patch({'set': 'nvidia'})).status == 406
