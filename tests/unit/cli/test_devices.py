# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands on devices."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from osc_lib import exceptions

from cyborg_lite.errors.devices import ModeRefused
from cyborg_lite.model.devices.cleaning import (
    CleaningRecord,
    CleaningState,
    CleanState,
    DeviceCleanings,
    UnitState,
)
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from tests.support.api.command_line import read_json, run_command
from tests.support.api.conversation import Client
from tests.support.api.reconfiguration import add_modes, find_plan, start_mode_change

UNIT = '0000:c2:00.0'
AT = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture
def device(client: Client) -> str:
    """Add a device with a unit whose cleaning run has failed, and with two modes."""
    unit = UnitState(UNIT, CleanState.FAILED, CleaningPolicy.AFTER_USE, 'refused')
    client.conductor.answers['list_cleanings'] = DeviceCleanings((unit,), ())
    return add_modes(client.conductor)


def test_set_disables_with_reason_and_enables(client: Client, device: str) -> None:
    options = ('--disable', '--reason', 'A fan.')
    row = read_json(client, 'device set', device, *options)
    assert (row['status'], row['status_reason']) == ('maintaining', 'A fan.')
    row = read_json(client, 'device set', device, '--enable')
    assert (row['status'], row['status_reason']) == ('enabled', '')


def test_clean_list_shows_units_or_history(client: Client, device: str) -> None:
    (unit,) = read_json(client, 'device clean list', device)
    assert (unit['Unit'], unit['State'], unit['Reason']) == (
        UNIT,
        'clean_failed',
        'refused',
    )
    assert read_json(client, 'device clean list', device, '--history') == []
    client.conductor.answers['accept_units'] = 1
    run_command(client, 'device clean accept', device, '--name', 'Ada', '--unit', UNIT)
    assert client.conductor.list_arguments('accept_units', 'actor') == ['Ada']
    record = CleaningRecord('r', UNIT, CleaningState.ACCEPTED, 'Ada', AT)
    client.conductor.answers['list_cleanings'] = DeviceCleanings((), (record,))
    (row,) = read_json(client, 'device clean list', device, '--history')
    assert (row['Actor'], row['Steps']) == ('Ada', '0/0')


def test_clean_retry_starts_clean(client: Client, device: str) -> None:
    client.conductor.answers['retry_cleaning'] = 'operation'
    (unit,) = read_json(client, 'device clean retry', device, '--unit', UNIT)
    assert unit['Unit'] == UNIT
    (selection,) = client.conductor.list_arguments('retry_cleaning', 'selection')
    assert (selection.device_uuid, selection.unit) == (device, UNIT)
    del client.conductor.answers['retry_cleaning']
    with pytest.raises(exceptions.CommandError, match='HTTP 409'):
        run_command(client, 'device clean retry', device)


def test_device_reset_starts_cleaning_run(client: Client, device: str) -> None:
    client.conductor.answers['reset_device'] = 'operation'
    (unit,) = read_json(client, 'device reset', device, '--force', 'Ada')
    assert unit['Unit'] == UNIT
    (selection,) = client.conductor.list_arguments('reset_device', 'selection')
    assert (selection.device_uuid, selection.name) == (device, 'Ada')


def test_mode_list_shows_change_of_inventory(client: Client, device: str) -> None:
    current, second = read_json(client, 'device mode list', device)
    assert (current['Mode'], current['Current']) == ('dc', True)
    assert (current['Declared'], second['Declared']) == (False, True)
    assert second['Appears'] == ['16 CUSTOM_QAT']


def test_mode_apply_changes_devices_that_differ(client: Client, device: str) -> None:
    (row,) = read_json(client, 'device mode apply', 'compute-1', '--dry-run')
    assert (row['Current'], row['Declared'], row['Result']) == ('dc', 'sym', None)
    start_mode_change(client.conductor)
    (row,) = read_json(client, 'device mode apply', 'compute-1')
    assert (row['Device'], row['Result']) == (device, 'started')
    assert client.conductor.list_arguments('change_mode', 'mode') == ['sym']


def test_mode_apply_reports_refusal_of_device(client: Client, device: str) -> None:
    refusal = ModeRefused(uuid=device, mode='sym', reason='it has no such mode.')
    client.conductor.answers['change_mode'] = refusal
    (row,) = read_json(client, 'device mode apply', 'compute-1')
    assert row['Result'].endswith('(HTTP 409)')


def test_mode_apply_ignores_devices_without_difference(
    client: Client, device: str
) -> None:
    for declared in (None, 'dc'):
        plan = replace(find_plan(client.conductor), declared=declared)
        client.conductor.answers['plan_modes'] = plan
        assert read_json(client, 'device mode apply', 'compute-1') == []
