# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-dbsync online_data_migrations`` and ``upgrade --contract``.

The commands run with the migrations of an imaginary next release.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.dbsync import main
from cyborg_lite.db.core import migration, online_migrations
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.online_migrations import OnlineMigration
from cyborg_lite.db.hosts import services
from cyborg_lite.version import VERSION
from tests.builders.next_release import labels, schema
from tests.builders.rows import add_card
from tests.servers.databases import find_url

Out = pytest.CaptureFixture[str]
Run = Callable[..., int]


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
def run(write_config: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs dbsync with arguments."""
    monkeypatch.setattr(configuration, 'set_up_logging', lambda _conf: None)
    options = write_config()
    return lambda *arguments: main.main([*options, *arguments])


@pytest.fixture
def expanded_database(run: Run, database: Database) -> Database:
    """Return a database with three devices that have no label yet."""
    for _ in range(3):
        add_card(database, 1)
    run('upgrade', '--expand')
    return database


def test_expand_prints_command_of_contraction(run: Run, capsys: Out) -> None:
    assert run('upgrade', '--expand') == 0
    output = capsys.readouterr().out
    assert f'from revision {schema.NEWEST} to {schema.EXPANSION}' in output
    assert 'cyborg-lite-dbsync upgrade --contract' in output
    assert run('upgrade', '--expand') == 0
    assert 'already at revision' in capsys.readouterr().out


@pytest.mark.parametrize(
    'arguments', [('online_data_migrations',), ('upgrade', '--contract')]
)
def test_command_before_expansion_is_refused(
    run: Run, database: Database, capsys: Out, arguments: tuple[str, ...]
) -> None:
    add_card(database, 1)
    assert run(*arguments) == 1
    assert 'upgrade --expand' in capsys.readouterr().err


def test_online_migrations_change_rows_in_batches(
    run: Run, expanded_database: Database, capsys: Out
) -> None:
    assert run('online_data_migrations', '--max-count', '2') == 1
    assert f'Rows are left: {labels.NAME}' in capsys.readouterr().out
    assert expanded_database.read(labels.list_labels).count(None) == 1
    assert run('online_data_migrations') == 0
    assert None not in expanded_database.read(labels.list_labels)
    assert run('online_data_migrations') == 0


@pytest.mark.usefixtures('expanded_database')
def test_contract_unmigrated_rows_is_refused(run: Run, capsys: Out) -> None:
    assert run('upgrade', '--contract') == 1
    assert 'online_data_migrations' in capsys.readouterr().err
    run('online_data_migrations')
    assert run('upgrade', '--contract') == 0
    assert f'to {schema.CONTRACTION}' in capsys.readouterr().out


def test_contract_daemon_of_other_version_is_refused(
    run: Run, expanded_database: Database, capsys: Out
) -> None:
    run('online_data_migrations')
    expanded_database.write(services.record_start, 'agent', 'cpu1', '0.0.1')
    assert run('upgrade', '--contract') == 1
    assert 'agent on cpu1 (0.0.1)' in capsys.readouterr().err
    expanded_database.write(services.record_start, 'agent', 'cpu1', VERSION)
    assert run('upgrade', '--contract') == 0


def test_contract_new_database_creates_newest_schema(
    run: Run, tmp_path: Path, database: Database, capsys: Out
) -> None:
    database.close()
    (tmp_path / 'cyborg_lite.sqlite').unlink()
    assert run('upgrade', '--contract') == 0
    assert f'from revision None to {schema.CONTRACTION}' in capsys.readouterr().out
