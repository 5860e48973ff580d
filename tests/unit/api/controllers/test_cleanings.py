# SPDX-License-Identifier: Apache-2.0
"""Tests of cleans of devices at microversion 2.7."""

from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.model.devices.cleaning import (
    CleaningRecord,
    CleaningState,
    CleanState,
    CleanStepResult,
    DeviceCleanings,
    UnitState,
)
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from tests.builders.device_rows import add_device
from tests.support.api.conversation import MANAGER, Client, build_policy_client

UNIT = '0000:c2:00.0'
ARQ = '5c9a477a-d3d4-426a-9e9c-b2660917780e'


def add_failed(client: Client, reason: str = 'refused') -> str:
    """Add a device with a unit whose cleaning run has failed; return its path."""
    device = add_device(client.conductor.database)
    started = device.created_at
    step = CleanStepResult('sanitize', started, None, '', f'the drive: {reason}')
    client.conductor.answers['list_cleanings'] = DeviceCleanings(
        (UnitState(UNIT, CleanState.FAILED, CleaningPolicy.AFTER_USE, reason),),
        (
            CleaningRecord(
                device.uuid,
                UNIT,
                CleaningState.FAILED,
                'cyborg-lite',
                started,
                started,
                (step,),
                1,
                reason,
            ),
        ),
    )
    return f'/devices/{device.uuid}/cleanings'


def test_list_cleanings_shows_units_and_steps(newest: Client) -> None:
    path = add_failed(newest)
    view = newest.get(path).json
    assert view['units'] == [
        {
            'unit': UNIT,
            'state': 'clean_failed',
            'policy': 'after-use',
            'reason': 'refused',
        }
    ]
    (record,) = view['cleanings']
    assert (record['state'], record['actor']) == ('failed', 'cyborg-lite')
    assert record['steps'][0]['error'] == 'the drive: refused'
    assert record['steps'][0]['proof'] is None


def test_cleanings_only_admin_sees_uuids_in_reasons(tmp_path: Path) -> None:
    """The ARQs and instances belong to all projects."""
    rule = '"cyborg:cleaning:get_all": "rule:project_manager_or_admin"'
    newest = build_policy_client(tmp_path, rule).at('2.7')
    path = add_failed(newest, f'ARQ {ARQ} uses it.')
    hidden = 'ARQ (hidden) uses it.'
    assert list_reasons(newest, path).count(f'ARQ {ARQ} uses it.') == 2
    unit, step, record = list_reasons(newest.as_(MANAGER, '2.7'), path)
    assert (unit, step, record) == (hidden, f'the drive: {hidden}', hidden)


def list_reasons(client: Client, path: str) -> list[str]:
    """Return the reason of the unit, the error of the step, the reason of the run."""
    view = client.get(path).json
    (unit,), (record,) = view['units'], view['cleanings']
    return [unit['reason'], record['steps'][0]['error'], record['reason']]


def test_accept_unit_records_name(newest: Client) -> None:
    path = add_failed(newest)
    assert newest.post(f'{path}/accept', {}).status == 400
    assert newest.post(f'{path}/accept', {'name': ' '}).status == 400
    body, conductor = {'name': 'Jo', 'unit': UNIT}, newest.conductor
    conductor.answers['accept_units'] = 1
    assert newest.post(f'{path}/accept', body).status == 204
    assert conductor.list_arguments('accept_units', 'actor') == ['Jo']
    (selection,) = conductor.list_arguments('accept_units', 'selection')
    assert (selection.device_uuid in path, selection.unit) == (True, UNIT)
    # The device has no units in the database.
    del conductor.answers['accept_units']
    assert newest.post(f'{path}/accept', {'name': 'Jo'}).status == 409


def test_retry_without_body_cleans_all_units(newest: Client) -> None:
    path = add_failed(newest)
    newest.conductor.answers['retry_cleaning'] = 'operation'
    assert newest.post(f'{path}/retry').status == 202
    (selection,) = newest.conductor.list_arguments('retry_cleaning', 'selection')
    assert selection.unit == ''
    del newest.conductor.answers['retry_cleaning']
    assert newest.post(f'{path}/retry', {'unit': 'another'}).status == 409


def test_reset_starts_operation(newest: Client) -> None:
    path = add_failed(newest).replace('cleanings', 'reset')
    newest.conductor.answers['reset_device'] = 'operation'
    answer = newest.post(path, {'force': 'Jo'})
    assert (answer.status, answer.headers['Location'].endswith('/operation')) == (
        202,
        True,
    )
    (selection,) = newest.conductor.list_arguments('reset_device', 'selection')
    assert (selection.unit, selection.name) == ('', 'Jo')
    del newest.conductor.answers['reset_device']
    assert newest.post(path, {'unit': 'another'}).status == 409
    assert newest.post(path, {'name': 'Jo'}).status == 400


@pytest.mark.parametrize(
    ('action', 'body'),
    [
        ('retry', {'unit': ''}),
        ('retry', {'unit': 'u' * 129}),
        ('retry', {'name': 'x'}),
        ('retry', []),
        ('accept', None),
        ('accept', {'name': ''}),
        ('accept', {'name': 'x', 'force': True}),
    ],
)
# Any: JSON values.
def test_cleanings_invalid_body_is_refused(
    newest: Client, action: str, body: Any
) -> None:
    answer = newest.post(f'{add_failed(newest)}/{action}', body)
    assert answer.status in (400, 415)
    assert not newest.conductor.list_arguments('accept_units', 'actor')
