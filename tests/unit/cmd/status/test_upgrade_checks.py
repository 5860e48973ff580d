# SPDX-License-Identifier: Apache-2.0
"""Tests of the checks before an upgrade: result codes and remedies."""

from collections.abc import Callable
from pathlib import Path

import pytest
from oslo_upgradecheck.upgradecheck import Code
from sqlalchemy import insert

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
from tests.builders.next_release import labels, schema
from tests.builders.rows import add_profile
from tests.servers.message_keys import write_lines

Out = pytest.CaptureFixture[str]
Build = Callable[..., Checks]


@pytest.fixture
def build_checks(write_config: Callable[..., list[str]], tmp_path: Path) -> Build:
    """Return a function that builds the checks of a configured service."""

    def build(
        bus: str = 'rabbit://joe@broker/', signatures: str = 'required'
    ) -> Checks:
        keys = write_lines(tmp_path, 'controller') if signatures == 'required' else ''
        options = f'transport_url = {bus}\nmessage_signatures = {signatures}\n'
        lines = f'[DEFAULT]\n{options}{keys}'
        return Checks(configuration.parse(write_config(lines), 'prog'))

    return build


def test_check_default_bus_warns(build_checks: Build, capsys: Out) -> None:
    assert build_checks('rabbit://').check() == Code.WARNING
    assert 'transport_url is not set' in capsys.readouterr().out


def test_check_outdated_daemon_warns_with_host(
    build_checks: Build, database: Database, capsys: Out
) -> None:
    database.write(services.record_start, 'agent', 'cpu1', '0.0.1')
    assert build_checks().check() == Code.WARNING
    output = ' '.join(capsys.readouterr().out.replace('|', ' ').split())
    assert 'agent on cpu1 (0.0.1)' in output


@pytest.mark.parametrize('signatures', ['optional', 'off'])
def test_check_signatures_not_required_warns(
    build_checks: Build, signatures: str
) -> None:
    checks = build_checks(signatures=signatures)
    result = checks._run(_check_signatures)
    assert result.code is Code.WARNING
    assert f'message_signatures is {signatures}' in str(result.details)


def test_check_signatures_without_secret_fails(
    build_checks: Build, tmp_path: Path
) -> None:
    checks = build_checks()
    (tmp_path / 'agent-key-secret').unlink()
    result = checks._run(_check_signatures)
    assert result.code is Code.FAILURE
    assert 'cyborg-lite-manage agent secret' in str(result.details)


def test_check_old_jobs_rows_and_profiles_warns(
    build_checks: Build,
    database: Database,
    capsys: Out,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    former = {'resources:CUSTOM_ACCELERATOR_FPGA': '1'}
    add_profile(database, [former])
    job = {'uuid': '1', 'kind': 'ancient', 'payload': {}, 'run_after': 0}
    statement = insert(tables.Job).values(**job, created_at=0)
    database.write(lambda session: session.execute(statement))
    unfinished = OnlineMigration(
        'labels', lambda _session, _n: 0, lambda _session: True
    )
    monkeypatch.setattr(online_migrations, 'MIGRATIONS', (unfinished,))
    assert build_checks().check() == Code.WARNING
    output = ' '.join(capsys.readouterr().out.replace('|', ' ').split())
    assert '1 ancient' in output
    assert '1 device profiles have former names' in output
    assert 'Rows are not migrated: labels' in output


def test_check_rows_before_expansion_warns(
    build_checks: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration may need a column that the expansion adds."""
    scripts = schema.copy_migrations(tmp_path / 'migrations')
    monkeypatch.setattr(migration, 'script_location', lambda: scripts)
    fill = OnlineMigration(labels.NAME, labels.fill_labels, labels.has_unlabelled)
    monkeypatch.setattr(online_migrations, 'MIGRATIONS', (fill,))
    result = build_checks()._run(_check_online_migrations)
    assert result.code is Code.WARNING
    assert 'upgrade --expand' in str(result.details)
