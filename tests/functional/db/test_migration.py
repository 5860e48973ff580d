# SPDX-License-Identifier: Apache-2.0
"""The migrations make what the models say, on each database."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, create_engine, inspect

from cyborg_lite.db import migration
from cyborg_lite.db.tables import Base
from tests.fakes.databases import fresh_database


@pytest.fixture(params=['sqlite', 'mariadb', 'postgresql'])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without any table."""
    yield from _empty(request.param, tmp_path / 'empty.sqlite')


@pytest.fixture
def another(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A second one of the same kind."""
    kind = request.node.callspec.params['empty']
    yield from _empty(kind, tmp_path / 'another.sqlite')


def _empty(kind: str, file: Path) -> Iterator[str]:
    if kind == 'sqlite':
        yield f'sqlite:///{file}'
    else:
        yield from fresh_database(kind)


def _made_by_models(url: str) -> Engine:
    engine = create_engine(url)
    Base.metadata.create_all(engine)
    return engine


def _described(engine: Engine) -> dict[str, Any]:
    """All that the database knows of its tables; Any: words of SQLAlchemy."""
    inspector = inspect(engine)
    names = set(inspector.get_table_names()) - {'alembic_version'}
    return {
        name: {
            'columns': [
                {**column, 'type': str(column['type'])}
                for column in inspector.get_columns(name)
            ],
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


def test_alembic_sees_no_difference_to_the_models(empty: str) -> None:
    migration.upgrade(empty)
    engine = create_engine(empty)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection)
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_the_schema_is_the_same_as_the_models_make(empty: str, another: str) -> None:
    """Of names, lengths, and character sets too, which alembic does not compare."""
    migration.upgrade(empty)
    engines = create_engine(empty), _made_by_models(another)
    migrated, made = (_described(engine) for engine in engines)
    assert migrated.keys() == made.keys()
    for name, table in made.items():
        assert migrated[name] == table
    for engine in engines:
        engine.dispose()


def test_an_upgraded_database_has_the_newest_revision(empty: str) -> None:
    assert migration.current(empty) is None
    migration.upgrade(empty)
    assert migration.current(empty) == migration.head()


def test_several_hosts_may_upgrade_at_once(empty: str) -> None:
    code = f'from cyborg_lite.db import migration; migration.upgrade({empty!r})'
    command = [sys.executable, '-c', code]
    hosts = [subprocess.Popen(command) for _ in range(3)]
    assert [host.wait() for host in hosts] == [0, 0, 0]
    assert migration.current(empty) == migration.head()


def test_a_difference_becomes_a_script_for_developers(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scripts are copied, lest the test writes into the tree."""
    copied = tmp_path / 'scripts'
    original = migration.script_location()
    (copied / 'versions').mkdir(parents=True)
    for name in ('env.py', 'script.py.mako', 'versions/0001_initial_schema.py'):
        (copied / name).write_bytes((original / name).read_bytes())
    monkeypatch.setattr(migration, 'script_location', lambda: copied)
    migration.upgrade(empty)
    made = migration.create(empty, 'nothing new')
    assert made.name == '0002_nothing_new.py'
    assert 'pass' in made.read_text()
    migration.upgrade(empty)
    assert migration.current(empty) == '0002'
