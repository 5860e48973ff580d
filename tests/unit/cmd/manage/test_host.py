# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage host`` with a fake Placement."""

import json
import logging
from collections.abc import Callable

import pytest

from cyborg_lite.cmd.manage import main
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import devices, modes, reconfigurations
from cyborg_lite.db.devices.reconfigurations import NewReconfiguration
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.jobs import JobType, ModePayload, ReconfigurePayload
from cyborg_lite.model.queries import Query
from tests.builders.bound_arqs import create_bound_instance
from tests.builders.reports import HOST, card
from tests.builders.rows import OWNER, add_card
from tests.builders.service_rows import mark_down, mark_up
from tests.doubles.placement import FakePlacement

Out = pytest.CaptureFixture[str]
Run = Callable[..., int]


@pytest.fixture
def run(write_config: Callable[..., list[str]], placement: FakePlacement) -> Run:
    """Return a function that runs the command with further arguments."""
    options = [*write_config(), 'host']
    return lambda *arguments: main.main([*options, *arguments])


def test_list_shows_hosts_as_table_and_json(
    run: Run, database: Database, capsys: Out
) -> None:
    add_card(database, 1)
    assert run('list') == 0
    _heading, row = capsys.readouterr().out.splitlines()
    assert row.split() == [HOST, '-', '1', '0', '0']
    assert run('list', '--format', 'json') == 0
    (host,) = json.loads(capsys.readouterr().out)
    assert (host['name'], host['devices']) == (HOST, 1)


def test_show_lists_devices_and_arqs(run: Run, database: Database, capsys: Out) -> None:
    (arq,), instance = create_bound_instance(database, 1)
    assert run('show', HOST) == 0
    output = capsys.readouterr().out
    assert arq in output
    assert instance in output
    assert 'enabled' in output


def test_show_unknown_host_returns_2(run: Run, capsys: Out) -> None:
    assert run('show', 'nowhere') == 2
    assert 'Host nowhere not found.' in capsys.readouterr().err


def test_disable_and_enable_reserve_and_free_in_placement(
    run: Run, database: Database, placement: FakePlacement, capsys: Out
) -> None:
    rp_uuid = add_card(database, 3)
    assert run('disable', HOST, '--reason', 'new fan') == 0
    assert placement.providers[rp_uuid].inventories['PGPU'].reserved == 3
    assert '1 device ' in capsys.readouterr().out
    assert run('enable', HOST) == 0
    assert placement.providers[rp_uuid].inventories['PGPU'].reserved == 0


@pytest.mark.parametrize('is_reconfigured', [False, True])
def test_enable_names_devices_that_jobs_change(
    run: Run,
    database: Database,
    capsys: Out,
    caplog: pytest.LogCaptureFixture,
    is_reconfigured: bool,
) -> None:
    report = HostReport(HOST, 'boot', (card(0x3B, handles=1), card(0x5E, handles=1)))
    database.write(reports.store_report, report)
    *_, uuid = (device.uuid for device in database.read(devices.list_devices, Query()))
    run('disable', HOST)
    if is_reconfigured:
        begin_reconfiguration(database, uuid)
    else:
        begin_mode_change(database, uuid)
    capsys.readouterr()
    with caplog.at_level(logging.INFO):
        assert run('enable', HOST) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f'Host {HOST}: the status of 1 device is enabled now.'
    assert f'Device {uuid} is not enabled' in second
    assert f'Jobs change devices of host {HOST}: {uuid}' in caplog.text
    run('disable', HOST)
    assert uuid not in capsys.readouterr().out


def begin_mode_change(database: Database, uuid: str) -> None:
    payload = ModePayload(uuid, 'fast')
    database.write(modes.add_change, payload, None)
    (job,) = database.write(queue.lease_jobs, OWNER, 10, (JobType.MODE,))
    database.write(modes.hold_device, job, payload)


def begin_reconfiguration(database: Database, uuid: str) -> None:
    new = NewReconfiguration(uuid, 'set', {}, 'admin', 1000)
    change = database.write(reconfigurations.add_change, new, lambda _facts: False)
    (job,) = database.write(queue.lease_jobs, OWNER, 10, (JobType.RECONFIGURE,))
    payload = ReconfigurePayload(uuid, change)
    database.write(reconfigurations.begin_change, job, payload, lambda _facts: False)


def test_forget_deletes_rows_and_providers(
    run: Run, database: Database, placement: FakePlacement, capsys: Out
) -> None:
    rp_uuid = add_card(database, 2)
    run('enable', HOST)
    run('disable', HOST)
    assert rp_uuid in placement.providers
    mark_down(database, HOST)
    assert run('forget', HOST) == 0
    assert rp_uuid not in placement.providers
    assert '1 device, 2 handles' in capsys.readouterr().out
    assert run('show', HOST) == 2


@pytest.mark.parametrize('drain', [[], ['--drain']])
def test_forget_host_in_use_lists_instances(
    run: Run,
    database: Database,
    placement: FakePlacement,
    capsys: Out,
    drain: list[str],
) -> None:
    (arq,), instance = create_bound_instance(database, 1)
    mark_up(database, HOST)
    assert run('forget', HOST, *drain) == 1
    output = capsys.readouterr().out
    assert arq in output
    assert instance in output
    assert 'Stop cyborg-lite-agent' in output
    run('list', '--format', 'json')
    (host,) = json.loads(capsys.readouterr().out)
    assert host['maintaining'] == (1 if drain else 0)


def test_forget_placement_down_is_completed_later(
    run: Run,
    database: Database,
    placement: FakePlacement,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Out,
) -> None:
    add_card(database, 1)

    def fail(_name: str) -> None:
        raise ServiceUnavailable(what='Placement')

    monkeypatch.setattr(placement, 'find_provider_by_name', fail)
    assert run('forget', HOST) == 2
    assert 'Placement' in capsys.readouterr().err
    monkeypatch.undo()
