# SPDX-License-Identifier: Apache-2.0
"""Upgrades on each kind of database: the schema equals that of the models."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, create_engine, inspect, text

from cyborg_lite.db.core import migration
from cyborg_lite.db.core.tables import Base
from cyborg_lite.errors.base import Conflict


def _create_from_models(url: str) -> Engine:
    engine = create_engine(url)
    Base.metadata.create_all(engine)
    return engine


def _describe(engine: Engine) -> dict[str, Any]:
    """Return the definitions of all tables as dictionaries of SQLAlchemy."""
    inspector = inspect(engine)
    names = set(inspector.get_table_names()) - {'alembic_version'}
    return {
        name: {
            # The order of columns has no meaning: revisions append them.
            'columns': {
                column['name']: {**column, 'type': str(column['type'])}
                for column in inspector.get_columns(name)
            },
            'primary key': inspector.get_pk_constraint(name),
            'foreign keys': _by_name(inspector.get_foreign_keys(name)),
            'unique': _by_name(inspector.get_unique_constraints(name)),
            'indexes': _by_name(inspector.get_indexes(name)),
            'options': inspector.get_table_options(name),
        }
        for name in names
    }


def _by_name(items: Any) -> dict[str, Any]:
    return {item['name']: item for item in items}


def test_upgrade_alembic_finds_no_difference_to_models(empty_url: str) -> None:
    migration.upgrade(empty_url)
    engine = create_engine(empty_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_upgrade_schema_equals_models(empty_url: str, second_empty_url: str) -> None:
    """Compare names, lengths and character sets too, which Alembic ignores."""
    migration.upgrade(empty_url)
    engines = create_engine(empty_url), _create_from_models(second_empty_url)
    migrated, from_models = (_describe(engine) for engine in engines)
    assert migrated.keys() == from_models.keys()
    for name, table in from_models.items():
        assert migrated[name] == table
    for engine in engines:
        engine.dispose()


def test_upgrade_database_has_newest_revision(empty_url: str) -> None:
    assert migration.current_revision(empty_url) is None
    migration.upgrade(empty_url)
    assert migration.current_revision(empty_url) == migration.head_revision()


def test_upgrade_on_three_hosts_at_once_succeeds(empty_url: str) -> None:
    load = 'from cyborg_lite.db.core import migration'
    code = f'{load}; migration.upgrade({empty_url!r})'
    command = [sys.executable, '-c', code]
    hosts = [subprocess.Popen(command) for _ in range(3)]
    assert [host.wait() for host in hosts] == [0, 0, 0]
    assert migration.current_revision(empty_url) == migration.head_revision()


def test_create_revision_without_difference_writes_empty_script(
    empty_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copy the scripts, so that the test does not write into the tree."""
    script_copy = tmp_path / 'scripts'
    shutil.copytree(migration.script_location(), script_copy)
    monkeypatch.setattr(migration, 'script_location', lambda: script_copy)
    migration.upgrade(empty_url)
    number = f'{int(migration.head_revision()) + 1:04}'
    created = migration.create_revision(empty_url, 'nothing new')
    assert created.name == f'{number}_nothing_new.py'
    assert 'pass' in created.read_text()
    migration.upgrade(empty_url)
    assert migration.current_revision(empty_url) == number


def test_upgrade_without_lock_changes_nothing(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two concurrent upgrades would leave a schema that neither can continue."""
    if not empty_url.startswith('mysql'):
        pytest.skip('PostgreSQL waits without a limit, SQLite locks the file')
    statement = "SELECT GET_LOCK(CONCAT(DATABASE(), '.dbsync'), 0)"
    monkeypatch.setitem(migration._LOCK_STATEMENTS, 'mysql', statement)
    engine = create_engine(empty_url)
    with engine.connect() as connection:
        assert connection.execute(text(statement)).scalar() == 1
        with pytest.raises(Conflict):
            migration.upgrade(empty_url)
        assert migration.current_revision(empty_url) is None
    engine.dispose()
