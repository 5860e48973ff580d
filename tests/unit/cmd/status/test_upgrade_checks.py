# SPDX-License-Identifier: Apache-2.0
"""Tests of the checks before an upgrade: result codes and remedies."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from oslo_upgradecheck.upgradecheck import Code
from sqlalchemy import insert
from sqlalchemy.orm import Session

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.status.upgrade_checks import (
    Checks,
    _check_online_migrations,
    _check_signatures,
)
from cyborg_lite.db.core import migration, online_migrations, tables
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.online_migrations import OnlineMigration
from cyborg_lite.db.hosts import services
from cyborg_lite.version import VERSION
from tests.builders.next_release import labels, schema
from tests.builders.rows import add_profile
from tests.servers.databases import create_sqlite_file
from tests.servers.message_keys import write_lines

Out = pytest.CaptureFixture[str]
Change = Callable[[Session], object]


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f'sqlite:///{tmp_path}/db.sqlite'


def build_checks(
    tmp_path: Path,
    address: str,
    bus: str = 'rabbit://joe@broker/',
    signatures: str = 'required',
) -> Checks:
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(
        f'[DEFAULT]\ntransport_url = {bus}\n[database]\nconnection = {address}\n'
        + (write_lines(tmp_path, 'controller') if signatures == 'required' else '')
        + f'[DEFAULT]\nmessage_signatures = {signatures}\n'
    )
    return Checks(configuration.parse([], 'prog', [str(file)]))


def write(address: str, *changes: Change) -> None:
    """Change the rows of the database."""
    with closing(Database(address)) as database:
        for change in changes:
            database.write(change)


def test_check_without_problems_succeeds(tmp_path: Path, address: str) -> None:
    create_sqlite_file(tmp_path / 'db.sqlite')
    write(
        address,
        lambda session: services.record_start(session, 'agent', 'cpu1', VERSION),
    )
    assert build_checks(tmp_path, address).check() == Code.SUCCESS


def test_check_empty_database_fails_with_remedy(
    tmp_path: Path, address: str, capsys: Out
) -> None:
    assert build_checks(tmp_path, address).check() == Code.FAILURE
    assert 'cyborg-lite-dbsync' in capsys.readouterr().out


def test_check_default_bus_warns(tmp_path: Path, address: str, capsys: Out) -> None:
    create_sqlite_file(tmp_path / 'db.sqlite')
    assert build_checks(tmp_path, address, 'rabbit://').check() == Code.WARNING
    assert 'transport_url is not set' in capsys.readouterr().out


def test_check_outdated_daemon_warns_with_host(
    tmp_path: Path, address: str, capsys: Out
) -> None:
    create_sqlite_file(tmp_path / 'db.sqlite')
    write(
        address,
        lambda session: services.record_start(session, 'agent', 'cpu1', '0.0.1'),
    )
    assert build_checks(tmp_path, address).check() == Code.WARNING
    output = ' '.join(capsys.readouterr().out.replace('|', ' ').split())
    assert 'agent on cpu1 (0.0.1)' in output


@pytest.mark.parametrize('signatures', ['optional', 'off'])
def test_check_signatures_not_required_warns(
    tmp_path: Path, address: str, signatures: str
) -> None:
    checks = build_checks(tmp_path, address, signatures=signatures)
    result = checks._run(_check_signatures)
    assert result.code is Code.WARNING
    assert f'message_signatures is {signatures}' in str(result.details)


def test_check_signatures_without_secret_fails(tmp_path: Path, address: str) -> None:
    checks = build_checks(tmp_path, address)
    (tmp_path / 'agent-key-secret').unlink()
    result = checks._run(_check_signatures)
    assert result.code is Code.FAILURE
    assert 'cyborg-lite-manage agent secret' in str(result.details)


def test_check_old_jobs_rows_and_profiles_warns(
    tmp_path: Path, address: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_sqlite_file(tmp_path / 'db.sqlite')
    former = {'resources:CUSTOM_ACCELERATOR_FPGA': '1'}
    with closing(Database(address)) as database:
        add_profile(database, [former])
    write(
        address,
        lambda session: session.execute(
            insert(tables.Job).values(
                uuid='1', kind='ancient', payload={}, run_after=0, created_at=0
            )
        ),
    )
    unfinished = OnlineMigration(
        'labels', lambda _session, _n: 0, lambda _session: True
    )
    monkeypatch.setattr(online_migrations, 'MIGRATIONS', (unfinished,))
    assert build_checks(tmp_path, address).check() == Code.WARNING
    output = ' '.join(capsys.readouterr().out.replace('|', ' ').split())
    assert '1 ancient' in output
    assert '1 device profiles have former names' in output
    assert 'Rows are not migrated: labels' in output


def test_check_rows_before_expansion_warns(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration may need a column that the expansion adds."""
    create_sqlite_file(tmp_path / 'db.sqlite')
    scripts = schema.copy_migrations(tmp_path / 'migrations')
    monkeypatch.setattr(migration, 'script_location', lambda: scripts)
    fill = OnlineMigration(labels.NAME, labels.fill_labels, labels.has_unlabelled)
    monkeypatch.setattr(online_migrations, 'MIGRATIONS', (fill,))
    result = build_checks(tmp_path, address)._run(_check_online_migrations)
    assert result.code is Code.WARNING
    assert 'upgrade --expand' in str(result.details)
