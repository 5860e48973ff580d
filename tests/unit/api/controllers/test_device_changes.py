# SPDX-License-Identifier: Apache-2.0
"""Tests of the modes and the configuration of devices at microversion 2.7."""

from typing import Any

import pytest

from cyborg_lite.errors.devices import ModeRefused, ReconfigurationRefused
from tests.builders.device_rows import add_device
from tests.builders.patches import build_replace_patch
from tests.support.api.conversation import Client
from tests.support.api.reconfiguration import (
    SETTINGS,
    add_configuration,
    add_modes,
    start_change,
    start_mode_change,
)

ARQ = 'd5ca2f11-3108-4426-a11c-a959987565df'


def test_show_configuration_has_sets_and_users(newest: Client) -> None:
    path = f'/devices/{add_configuration(newest.conductor, ARQ)}'
    view = newest.get(f'{path}/configuration').json
    [hardware_set] = view['sets']
    assert (hardware_set['name'], hardware_set['required']) == ('nvidia', ['vgpus'])
    assert hardware_set['settings'] == SETTINGS
    assert (view['arqs'], view['changes']) == ([ARQ], [])


def test_patch_configuration_starts_change(newest: Client) -> None:
    path = f'/devices/{add_configuration(newest.conductor)}'
    start_change(newest.conductor)
    value = {'set': 'nvidia', 'settings': {'vgpus': 4}}
    answer = newest.patch(path, build_replace_patch(configuration=value))
    assert answer.status == 202
    (request,) = newest.conductor.list_arguments('change_configuration', 'request')
    assert (request.hardware_set, request.settings) == ('nvidia', {'vgpus': 4})
    [change] = answer.json['changes']
    assert (change['set'], change['state']) == ('nvidia', 'waiting')
    assert change['settings'] == {'vgpus': 4}


def test_patch_configuration_used_device_is_refused(newest: Client) -> None:
    path = f'/devices/{add_configuration(newest.conductor, ARQ)}'
    reason = f'ARQs use it: {ARQ}.'
    refusal = ReconfigurationRefused(uuid=ARQ, name='nvidia', reason=reason)
    newest.conductor.answers['change_configuration'] = refusal
    answer = newest.patch(path, build_replace_patch(configuration={'set': 'nvidia'}))
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
    path = f'/devices/{add_configuration(newest.conductor)}'
    assert newest.patch(path, build_replace_patch(configuration=value)).status == 400


def test_patch_configuration_with_other_path_is_refused(newest: Client) -> None:
    path = f'/devices/{add_configuration(newest.conductor)}'
    body = build_replace_patch(configuration={'set': 'nvidia'}, status='enabled')
    assert newest.patch(path, body).status == 400


@pytest.mark.parametrize('field', ['status', 'mode'])
def test_patch_other_path_with_object_is_refused(newest: Client, field: str) -> None:
    path = f'/devices/{add_configuration(newest.conductor)}'
    body = build_replace_patch(**{field: {'set': 'nvidia'}})
    assert newest.patch(path, body).status == 400


def test_show_modes_has_plan_of_each(newest: Client) -> None:
    path = f'/devices/{add_modes(newest.conductor, ARQ)}'
    view = newest.get(f'{path}/modes').json
    assert (view['current'], view['declared'], view['stored']) == ('dc', 'sym', None)
    assert (view['arqs'], view['change']) == ([ARQ], None)
    current, second = view['modes']
    assert (current['is_current'], current['appears']) == (True, [])
    assert second['appears'] == [
        {
            'resource_class': 'CUSTOM_QAT',
            'total': 16,
            'traits': ['CUSTOM_QAT_SERVICE_SYM'],
        }
    ]


def test_patch_mode_starts_change(newest: Client) -> None:
    path = f'/devices/{add_modes(newest.conductor)}'
    start_mode_change(newest.conductor)
    answer = newest.patch(path, build_replace_patch(mode='sym'))
    assert answer.status == 202
    assert newest.conductor.list_arguments('change_mode', 'mode') == ['sym']
    change = {'mode': 'sym', 'state': 'waiting', 'reason': None}
    assert answer.json['change'] == change


def test_patch_mode_device_in_use_is_refused(newest: Client) -> None:
    refusal = ModeRefused(uuid=ARQ, mode='sym', reason=f'ARQs use it: {ARQ}.')
    newest.conductor.answers['change_mode'] = refusal
    path = f'/devices/{add_modes(newest.conductor, ARQ)}'
    answer = newest.patch(path, build_replace_patch(mode='sym'))
    assert (answer.status, ARQ in answer.fault) == (409, True)


@pytest.mark.parametrize(
    'body',
    [
        build_replace_patch(mode='sym\nasym'),
        build_replace_patch(mode='sym', reason='why'),
        build_replace_patch(mode='sym') * 2,
    ],
)
def test_patch_mode_invalid_is_refused(
    newest: Client, body: list[dict[str, Any]]
) -> None:
    path = f'/devices/{add_modes(newest.conductor)}'
    assert newest.patch(path, body).status == 400


@pytest.mark.parametrize('change', [{'mode': 'sym'}, {'configuration': {'set': 'a'}}])
def test_changes_need_new_version(client: Client, change: dict[str, Any]) -> None:
    path = f'/devices/{add_device(client.conductor.database).uuid}'
    patch = build_replace_patch(**change)
    assert client.at('2.6').patch(path, patch).status == 406
