# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-dbsync online_data_migrations`` and ``upgrade --contract``.

The commands run with the migrations of an imaginary next release.
"""

from pathlib import Path

import pytest

from cyborg_lite.db.core import migration, online_migrations
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.online_migrations import OnlineMigration
from cyborg_lite.db.hosts import services
from cyborg_lite.version import VERSION
from tests.builders.next_release import labels, schema
from tests.builders.rows import add_card
from tests.servers.databases import find_url
from tests.unit.cmd.dbsync.conftest import Run


@pytest.fixture(autouse=True)
def _next_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: Database
) -> None:
    """Give this process the migrations of the next release.

    The database has the schema of this release.
    """
    assert migration.current_revision(find_url(database)) == schema.NEWEST
    scripts = schema.copy_migrations(tmp_path / 'migrations')
    monkeypatch.setattr(migration, 'script_location', lambda: scripts)
    fill = OnlineMigration(labels.NAME, labels.fill_labels, labels.has_unlabelled)
    monkeypatch.setattr(online_migrations, 'MIGRATIONS', (fill,))


@pytest.fixture
def expanded_database(run: Run, database: Database) -> Database:
    """Return a database with three devices that have no label yet."""
    for _ in range(3):
        add_card(database, 1)
    run('upgrade', '--expand')
    return database


def test_expand_prints_command_of_contraction(run: Run) -> None:
    status, out, _ = run('upgrade', '--expand')
    assert status == 0
    assert f'from revision {schema.NEWEST} to {schema.EXPANSION}' in out
    assert 'cyborg-lite-dbsync upgrade --contract' in out
    status, out, _ = run('upgrade', '--expand')
    assert (status, 'already at revision' in out) == (0, True)


@pytest.mark.parametrize(
    'arguments', [('online_data_migrations',), ('upgrade', '--contract')]
)
def test_command_before_expansion_is_refused(
    run: Run, database: Database, arguments: tuple[str, ...]
) -> None:
    add_card(database, 1)
    status, _, errors = run(*arguments)
    assert (status, 'upgrade --expand' in errors) == (1, True)


def test_online_migrations_change_rows_in_batches(
    run: Run, expanded_database: Database
) -> None:
    status, out, _ = run('online_data_migrations', '--max-count', '2')
    assert (status, f'Rows are left: {labels.NAME}' in out) == (1, True)
    assert expanded_database.read(labels.list_labels).count(None) == 1
    assert run('online_data_migrations')[0] == 0
    assert None not in expanded_database.read(labels.list_labels)
    assert run('online_data_migrations')[0] == 0


@pytest.mark.usefixtures('expanded_database')
def test_contract_unmigrated_rows_is_refused(run: Run) -> None:
    status, _, errors = run('upgrade', '--contract')
    assert (status, 'online_data_migrations' in errors) == (1, True)
    run('online_data_migrations')
    status, out, _ = run('upgrade', '--contract')
    assert (status, f'to {schema.CONTRACTION}' in out) == (0, True)


def test_contract_daemon_of_other_version_is_refused(
    run: Run, expanded_database: Database
) -> None:
    run('online_data_migrations')
    expanded_database.write(services.record_start, 'agent', 'cpu1', '0.0.1')
    status, _, errors = run('upgrade', '--contract')
    assert (status, 'agent on cpu1 (0.0.1)' in errors) == (1, True)
    expanded_database.write(services.record_start, 'agent', 'cpu1', VERSION)
    assert run('upgrade', '--contract')[0] == 0


def test_contract_new_database_creates_newest_schema(
    run: Run, tmp_path: Path, database: Database
) -> None:
    database.close()
    (tmp_path / 'cyborg_lite.sqlite').unlink()
    status, out, _ = run('upgrade', '--contract')
    assert status == 0
    assert f'from revision None to {schema.CONTRACTION}' in out
