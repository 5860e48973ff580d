# SPDX-License-Identifier: Apache-2.0
"""Tests of cyborg-lite-status on an SQLite file."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import update

from cyborg_lite.cmd.status import main
from cyborg_lite.db.core import tables
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.jobs import NewJob, Owner
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.version import VERSION
from tests.builders.provider_rows import add_device
from tests.builders.rows import add_handles
from tests.builders.service_rows import expire_heartbeat
from tests.servers.message_keys import write_lines


@pytest.fixture
def options(write_config: Callable[..., list[str]], tmp_path: Path) -> list[str]:
    bus = '[DEFAULT]\ntransport_url = rabbit://joe:secret@broker/\n'
    return write_config(bus + write_lines(tmp_path, 'controller'))


Out = pytest.CaptureFixture[str]


def parse_row(word: str, output: str) -> list[str]:
    """Return the cells of the line that starts with the word."""
    (line,) = [line for line in output.splitlines() if line.startswith(word)]
    return re.split(r'  +', line)


def test_status_without_problems_returns_0(
    options: list[str], database: Database, capsys: Out
) -> None:
    database.write(services.record_start, 'cyborg-lite-conductor', 'ctl1', '0.1.0')
    database.write(queue.add_job, NewJob(OperationKind.RECONCILE, key='cpu1'))
    assert main.main(options) == 0
    out = capsys.readouterr().out
    cells = parse_row('cyborg-lite-conductor', out)
    assert (cells[1], cells[2], cells[-1]) == ('ctl1', '0.1.0', 'up')
    assert parse_row('JOBS', out) == ['JOBS', 'WAITING', 'RUNNING', 'FAILED']
    assert parse_row('reconcile', out) == ['reconcile', '1', '0', '0']


def test_status_failing_placement_sync_prints_reason(
    options: list[str], database: Database, capsys: Out
) -> None:
    database.write(services.record_start, 'cyborg-lite-conductor', 'ctl1', '0.1.0')
    new = NewJob(OperationKind.RECONCILE, {'hostname': 'cpu1'}, key='cpu1')
    database.write(queue.add_job, new)
    (job,) = database.write(queue.lease_jobs, Owner('me', 30_000), 1)
    database.write(queue.postpone_job, job, 1000, 'Nova does not know it.')
    assert main.main(options) == 1
    out = capsys.readouterr().out
    assert 'WARNING placement_outdated on host cpu1 since ' in out
    assert '\n  Nova does not know it.\n  Run: openstack ' in out


def test_status_failed_job_returns_1(
    options: list[str], database: Database, capsys: Out
) -> None:
    database.write(services.record_start, 'cyborg-lite-conductor', 'ctl1', '0.1.0')
    database.write(queue.add_job, NewJob(OperationKind.RELEASE))
    failure = update(tables.Job).values(state='failed')
    database.write(lambda session: session.execute(failure))
    assert main.main(options) == 1
    out = capsys.readouterr().out
    assert parse_row('release', out) == ['release', '0', '0', '1']
    assert out.startswith('WARNING failed_job since ')


def test_status_without_daemons_returns_1(
    options: list[str], database: Database, capsys: Out
) -> None:
    assert main.main(options) == 1
    assert 'No daemon has ever started' in capsys.readouterr().out


def test_status_database_unreachable_prints_error(
    options: list[str], tmp_path: Path, capsys: Out
) -> None:
    (tmp_path / 'cyborg_lite.sqlite').unlink()
    assert main.main(options) == 1
    output = capsys.readouterr()
    assert output.out == ''
    assert output.err.startswith('cyborg-lite-status: ')


def test_upgrade_check_without_problems_returns_0(
    options: list[str], database: Database, capsys: Out
) -> None:
    database.write(services.record_start, 'cyborg-lite-conductor', 'ctl1', VERSION)
    assert main.main([*options, 'upgrade', 'check']) == 0
    assert 'Failure' not in capsys.readouterr().out


def test_upgrade_check_old_schema_returns_2(
    options: list[str], tmp_path: Path, capsys: Out
) -> None:
    (tmp_path / 'cyborg_lite.sqlite').unlink()
    assert main.main([*options, 'upgrade', 'check']) == 2
    assert 'cyborg-lite-dbsync' in capsys.readouterr().out


def test_upgrade_check_unmanaged_functions_warn(
    options: list[str], database: Database, capsys: Out
) -> None:
    add_handles(database, add_device(database, 'cpu1', '0000:3b:00.0'), 1)
    unmanaged = update(tables.AttachHandle).values(managed=False)
    database.write(lambda session: session.execute(unmanaged))
    assert main.main([*options, 'upgrade', 'check', '--json']) == 1
    checks = json.loads(capsys.readouterr().out)['checks']
    (details,) = [check['details'] for check in checks if check['result']]
    assert 'cpu1' in details
    with Path(options[1]).open('a') as file:
        file.write('[nova]\nattaches_unmanaged = true\n')
    assert main.main([*options, 'upgrade', 'check']) == 0


def test_status_conductor_reports_own_host(
    options: list[str], database: Database, capsys: Out
) -> None:
    with Path(options[1]).open('a') as file:
        file.write('[DEFAULT]\nhost = ctl1\n')
    assert main.main([*options, 'conductor']) == 1
    assert 'has ever started on host ctl1' in capsys.readouterr().out
    database.write(services.record_start, 'cyborg-lite-conductor', 'ctl1', '0.1.0')
    database.write(services.record_start, 'cyborg-lite-conductor', 'ctl2', '0.1.0')
    assert main.main([*options, 'conductor']) == 0
    expire_heartbeat(database, 'ctl1', 'cyborg-lite-conductor')
    assert main.main([*options, 'conductor']) == 1
    assert 'cyborg-lite-conductor on ctl1: down' in capsys.readouterr().out
