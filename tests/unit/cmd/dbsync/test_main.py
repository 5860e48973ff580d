# SPDX-License-Identifier: Apache-2.0
"""Tests of cyborg-lite-dbsync on an SQLite file."""

from pathlib import Path

import pytest

from cyborg_lite.db.core import migration
from cyborg_lite.db.core.engine import Database
from tests.unit.cmd.dbsync.conftest import Run

HEAD = migration.head_revision()


@pytest.fixture(autouse=True)
def file(tmp_path: Path, database: Database) -> Path:
    """Return the file of a database that does not exist yet."""
    database.close()
    file = tmp_path / 'cyborg_lite.sqlite'
    file.unlink()
    return file


def test_upgrade_prints_old_and_new_revision(run: Run) -> None:
    status, out, _ = run('upgrade')
    assert (status, f'upgraded from revision None to {HEAD}' in out) == (0, True)
    status, out, _ = run('upgrade')
    assert (status, f'already at revision {HEAD}' in out) == (0, True)


def test_current_old_schema_prints_upgrade_command(run: Run) -> None:
    status, out, _ = run('current')
    assert (status, 'run `cyborg-lite-dbsync upgrade`' in out) == (0, True)
    run('upgrade')
    assert run('current')[:2] == (0, f'{HEAD} (head)\n')


def test_history_lists_revisions(run: Run) -> None:
    status, out, _ = run('history')
    lines = out.splitlines()
    assert (status, lines[0].startswith('0001')) == (0, True)
    assert lines[-1].startswith(f'{HEAD} (head): ')


def test_upgrade_unknown_revision_prints_it(run: Run) -> None:
    status, _, errors = run('upgrade', '4711')
    assert (status, "'4711'" in errors) == (1, True)


def test_upgrade_unreachable_database_prints_one_error(run: Run, file: Path) -> None:
    file.mkdir()
    status, _, errors = run('upgrade')
    assert status == 1
    assert errors.startswith('cyborg-lite-dbsync: The database')


def test_main_without_command_exits_with_2(run: Run) -> None:
    with pytest.raises(SystemExit) as caught:
        run()
    assert caught.value.code == 2
