# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands on devices."""

from dataclasses import replace

import pytest
from osc_lib import exceptions

from cyborg_lite.cli import devices
from cyborg_lite.model.cleaning import CleanState, DeviceCleanings, UnitState
from cyborg_lite.model.inventory import CleaningPolicy
from cyborg_lite.model.modes import DevicePlan, ModePlan, OfferedInventory
from tests.support.api.command_line import read_json, run_command
from tests.support.api.conversation import Client, add_device

UNIT = '0000:c2:00.0'


@pytest.fixture
def device(client: Client) -> str:
    """Add a device with a unit whose clean has failed, and with two modes."""
    uuid = add_device(client.conductor).uuid
    unit = UnitState(UNIT, CleanState.FAILED, CleaningPolicy.AFTER_USE, 'refused')
    client.conductor.cleanings[uuid] = DeviceCleanings((unit,), ())
    vf = OfferedInventory('CUSTOM_QAT', 16, ())
    client.conductor.plans[uuid] = DevicePlan(
        uuid,
        'compute-1',
        '0000:e8:00.0',
        (
            ModePlan('dc', is_current=True),
            ModePlan('sym', is_current=False, appears=(vf,)),
        ),
        declared='sym',
    )
    return uuid


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
    run_command(client, 'device clean accept', device, '--name', 'Ada', '--unit', UNIT)
    (record,) = read_json(client, 'device clean list', device, '--history')
    assert (record['Actor'], record['Steps']) == ('Ada', '0/0')


def test_clean_retry_starts_clean(client: Client, device: str) -> None:
    (unit,) = read_json(client, 'device clean retry', device, '--unit', UNIT)
    assert unit['State'] == 'dirty'
    with pytest.raises(exceptions.CommandError, match='HTTP 409'):
        run_command(client, 'device clean retry', device)


def test_progress_of_cleans_waits_for_dirty_units() -> None:
    units = [
        {'unit': 'a', 'state': 'clean', 'reason': None},
        {'unit': 'b', 'state': 'dirty', 'reason': None},
        {'unit': 'c', 'state': 'clean_failed', 'reason': 'refused'},
        {'unit': 'd', 'state': 'used', 'reason': None},
    ]
    progress = devices.measure_cleans({'units': units}, None)
    assert (progress.percent, progress.is_finished, progress.failure) == (75, False, '')
    failure = devices.measure_cleans({'units': units}, 'c')
    assert (failure.is_finished, failure.failure) == (True, 'c: refused')
    assert devices.measure_cleans({'units': units}, 'a').failure == ''


def test_mode_list_shows_change_of_inventory(client: Client, device: str) -> None:
    current, second = read_json(client, 'device mode list', device)
    assert (current['Mode'], current['Current']) == ('dc', True)
    assert (current['Declared'], second['Declared']) == (False, True)
    assert second['Appears'] == ['16 CUSTOM_QAT']


def test_mode_set_starts_change(client: Client, device: str) -> None:
    modes = read_json(client, 'device mode set', device, 'sym')
    assert modes['change']['mode'] == 'sym'
    with pytest.raises(exceptions.CommandError, match='409'):
        run_command(client, 'device mode set', device, 'other')


def test_mode_apply_changes_devices_that_differ(client: Client, device: str) -> None:
    (row,) = read_json(client, 'device mode apply', 'compute-1', '--dry-run')
    assert (row['Current'], row['Declared'], row['Result']) == ('dc', 'sym', None)
    (row,) = read_json(client, 'device mode apply', 'compute-1')
    assert (row['Device'], row['Result']) == (device, 'started')
    change = client.conductor.plans[device].change
    assert change is not None
    assert change.mode == 'sym'


def test_mode_apply_reports_refusal_of_device(client: Client, device: str) -> None:
    plan = client.conductor.plans[device]
    client.conductor.plans[device] = replace(plan, plans=plan.plans[:1])
    (row,) = read_json(client, 'device mode apply', 'compute-1')
    assert row['Result'].endswith('(HTTP 409)')


def test_mode_apply_ignores_devices_without_difference(
    client: Client, device: str
) -> None:
    plan = client.conductor.plans[device]
    for declared in (None, 'dc'):
        client.conductor.plans[device] = replace(plan, declared=declared)
        assert read_json(client, 'device mode apply', 'compute-1') == []


@pytest.mark.parametrize(
    ('change', 'current', 'is_finished', 'failure'),
    [
        (None, 'sym', True, ''),
        (None, 'dc', False, 'The mode is dc.'),
        ({'state': 'running', 'reason': None}, 'dc', False, ''),
        ({'state': 'failed', 'reason': 'busy'}, 'dc', False, 'The change failed: busy'),
    ],
)
def test_progress_of_mode_ends_with_change(
    change: dict[str, str] | None, current: str, is_finished: bool, failure: str
) -> None:
    progress = devices.measure_mode({'change': change, 'current': current}, 'sym')
    assert (progress.is_finished, progress.failure) == (is_finished, failure)
