# SPDX-License-Identifier: Apache-2.0
"""cyborg-lite-status as an operator runs it, on a file."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from cyborg_lite.cmd import status
from cyborg_lite.db import jobs, migration, services, tables
from cyborg_lite.db.engine import Database
from cyborg_lite.model.jobs import Kind, NewJob, Owner
from cyborg_lite.version import version
from tests.fakes.provider_rows import add_device, change_device


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f'sqlite:///{tmp_path}/db.sqlite'


@pytest.fixture
def options(tmp_path: Path, address: str) -> list[str]:
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(
        '[DEFAULT]\ntransport_url = rabbit://joe:secret@broker/\n'
        f'[database]\nconnection = {address}\n'
    )
    return ['--config-file', str(file)]


@pytest.fixture
def database(address: str) -> Iterator[Database]:
    migration.upgrade(address)
    opened = Database(address)
    yield opened
    opened.close()


Out = pytest.CaptureFixture[str]


def row_of(word: str, output: str) -> list[str]:
    """The cells of the line that begins with the word."""
    (line,) = [line for line in output.splitlines() if line.startswith(word)]
    return re.split(r'  +', line)


def test_daemons_that_live_and_no_failed_jobs_are_status_0(
    options: list[str], database: Database, capsys: Out
) -> None:
    database.write(services.start, 'cyborg-lite-conductor', 'ctl1', '0.1.0')
    database.write(jobs.add, NewJob(Kind.PLACEMENT_SYNC, key='cpu1'))
    assert status.main(options) == 0
    out = capsys.readouterr().out
    cells = row_of('cyborg-lite-conductor', out)
    assert (cells[1], cells[2], cells[-1]) == ('ctl1', '0.1.0', 'up')
    assert row_of('JOBS', out) == ['JOBS', 'WAITING', 'RUNNING', 'FAILED']
    assert row_of('placement-sync', out) == ['placement-sync', '1', '0', '0']


def test_a_host_that_placement_does_not_follow_is_named_with_the_reason(
    options: list[str], database: Database, capsys: Out
) -> None:
    database.write(services.start, 'cyborg-lite-conductor', 'ctl1', '0.1.0')
    job = NewJob(Kind.PLACEMENT_SYNC, {'host': 'cpu1'}, key='cpu1')
    database.write(jobs.add, job)
    (mine,) = database.write(jobs.take, Owner('me', 30_000), 1)
    database.write(jobs.put_off, mine, 1000, 'Nova does not know it.')
    assert status.main(options) == 1
    out = capsys.readouterr().out
    assert 'Placement does not follow host cpu1: Nova does not know it.' in out


def test_a_silent_daemon_is_shown_and_is_status_1(
    options: list[str], database: Database, capsys: Out
) -> None:
    database.write(services.start, 'cyborg-lite-agent', 'cpu1', '0.1.0')
    database.write(services.start, 'cyborg-lite-agent', 'cpu2', '0.1.0')
    then = datetime.now(UTC) - timedelta(seconds=3600)
    silence = update(tables.Service).where(tables.Service.host == 'cpu2')
    database.write(lambda session: session.execute(silence.values(heartbeat_at=then)))
    assert status.main([*options, 'show']) == 1
    lines = capsys.readouterr().out.splitlines()
    states = {line.split()[1]: line.split()[-1] for line in lines if 'cpu' in line}
    assert states == {'cpu1': 'up', 'cpu2': 'silent'}
    assert any('3600 s ago' in line for line in lines)


def test_a_failed_job_is_shown_and_is_status_1(
    options: list[str], database: Database, capsys: Out
) -> None:
    database.write(services.start, 'cyborg-lite-conductor', 'ctl1', '0.1.0')
    database.write(jobs.add, NewJob(Kind.RELEASE))
    failed = update(tables.Job).values(state='failed')
    database.write(lambda session: session.execute(failed))
    assert status.main(options) == 1
    out = capsys.readouterr().out
    assert row_of('release', out) == ['release', '0', '0', '1']
    assert 'Failed jobs are kept' in out


def test_a_cloud_without_daemons_is_status_1(
    options: list[str], database: Database, capsys: Out
) -> None:
    assert status.main(options) == 1
    assert 'No daemon has ever been seen' in capsys.readouterr().out


def test_a_database_that_is_away_is_told_without_a_traceback(
    options: list[str], capsys: Out
) -> None:
    assert status.main(options) == 1
    said = capsys.readouterr()
    assert said.out == ''
    assert said.err.startswith('cyborg-lite-status: ')


def test_an_upgrade_may_go_on_when_all_is_well(
    options: list[str], database: Database, capsys: Out
) -> None:
    database.write(services.start, 'cyborg-lite-conductor', 'ctl1', version())
    assert status.main([*options, 'upgrade', 'check']) == 0
    assert 'Failure' not in capsys.readouterr().out


def test_an_old_schema_forbids_an_upgrade(options: list[str], capsys: Out) -> None:
    assert status.main([*options, 'upgrade', 'check']) == 2
    assert 'cyborg-lite-dbsync' in capsys.readouterr().out


def test_what_an_operator_should_know_is_a_warning(
    options: list[str], database: Database, capsys: Out
) -> None:
    database.write(services.start, 'cyborg-lite-agent', 'cpu1', '0.0.1')
    database.write(jobs.add, NewJob(Kind.RELEASE))
    failed = update(tables.Job).values(state='failed')
    database.write(lambda session: session.execute(failed))
    assert status.main([*options, 'upgrade', 'check', '--json']) == 1
    checks = json.loads(capsys.readouterr().out)['checks']
    told = {check['check']: check['details'] for check in checks if check['result']}
    assert told == {
        'The versions of the daemons': 'Of another version, restart them: '
        'cyborg-lite-agent on cpu1 (0.0.1).',
        'Failed jobs': '1 jobs have failed for good; see cyborg-lite-status.',
    }


def test_a_bus_that_nobody_configured_is_a_warning(
    tmp_path: Path, address: str, database: Database, capsys: Out
) -> None:
    file = tmp_path / 'no-bus.conf'
    file.write_text(f'[database]\nconnection = {address}\n')
    arguments = ['--config-file', str(file), 'upgrade', 'check']
    assert status.main(arguments) == 1
    assert 'transport_url is not set' in capsys.readouterr().out


def test_a_device_that_is_managed_twice_is_named_with_both(
    options: list[str], database: Database, capsys: Out
) -> None:
    database.write(services.start, 'cyborg-lite-conductor', 'ctl1', '0.1.0')
    rp_uuid = add_device(database, 'cpu1', '0000:3b:00.0')
    change_device(database, rp_uuid, conflict='Managed twice: by X and by Nova.')
    assert status.main(options) == 1
    out = capsys.readouterr().out
    assert 'of host cpu1 is not offered. Managed twice: by X and by Nova.' in out
