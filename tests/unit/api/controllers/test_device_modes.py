# SPDX-License-Identifier: Apache-2.0
"""Tests of the modes of devices at microversion 2.7."""

from dataclasses import replace
from typing import Any

import pytest

from cyborg_lite.errors.devices import ModeRefused
from cyborg_lite.model.devices.modes import (
    DevicePlan,
    ModeChange,
    ModePlan,
    OfferedInventory,
)
from cyborg_lite.model.jobs import JobState
from tests.builders.device_rows import add_device
from tests.support.api.conversation import Client

ARQ = 'd5ca2f11-3108-4426-a11c-a959987565df'
_SYM = OfferedInventory('CUSTOM_QAT', 16, ('CUSTOM_QAT_SERVICE_SYM',))
_DC = OfferedInventory('CUSTOM_QAT', 16, ('CUSTOM_QAT_SERVICE_DC',))


@pytest.fixture
def newest(client: Client) -> Client:
    return client.at('2.7')


def add_modes(client: Client, *arqs: str) -> str:
    """Add a device with two modes; return its path."""
    device = add_device(client.conductor.database)
    client.conductor.answers['plan_modes'] = DevicePlan(
        device.uuid,
        'compute-1',
        '0000:e8:00.0',
        (
            ModePlan('dc', is_current=True),
            ModePlan('sym', is_current=False, appears=(_SYM,), vanishes=(_DC,)),
        ),
        declared='sym',
        arqs=arqs,
    )
    return f'/devices/{device.uuid}'


def patch(mode: str) -> list[dict[str, Any]]:
    return [{'op': 'replace', 'path': '/mode', 'value': mode}]


def test_show_modes_has_plan_of_each(newest: Client) -> None:
    path = add_modes(newest, ARQ)
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
    path = add_modes(newest)
    plan = newest.conductor.answers['plan_modes']
    assert isinstance(plan, DevicePlan)
    changing = replace(plan, change=ModeChange('sym', JobState.WAITING))
    newest.conductor.answers['change_mode'] = changing
    answer = newest.patch(path, patch('sym'))
    assert answer.status == 202
    assert newest.conductor.list_arguments('change_mode', 'mode') == ['sym']
    change = {'mode': 'sym', 'state': 'waiting', 'reason': None}
    assert answer.json['change'] == change


def test_patch_mode_device_in_use_is_refused(newest: Client) -> None:
    refusal = ModeRefused(uuid=ARQ, mode='sym', reason=f'ARQs use it: {ARQ}.')
    newest.conductor.answers['change_mode'] = refusal
    answer = newest.patch(add_modes(newest, ARQ), patch('sym'))
    assert (answer.status, ARQ in answer.fault) == (409, True)


@pytest.mark.parametrize(
    'body',
    [
        patch('sym\nasym'),
        [*patch('sym'), {'op': 'add', 'path': '/reason', 'value': 'why'}],
        patch('sym') * 2,
    ],
)
def test_patch_mode_invalid_is_refused(
    newest: Client, body: list[dict[str, Any]]
) -> None:
    assert newest.patch(add_modes(newest), body).status == 400


def test_modes_need_new_version(newest: Client) -> None:
    path = add_modes(newest)
    older = newest.at('2.6')
    assert older.patch(path, patch('sym')).status == 406
