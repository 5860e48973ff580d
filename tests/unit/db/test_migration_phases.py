# SPDX-License-Identifier: Apache-2.0
"""Rules of revisions, and the phases of an upgrade to the next release.

The revisions of an imaginary next release follow those of this checkout, so that each
rule has a revision to judge.
"""

from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa

from cyborg_lite.db.core import migration, schema_check
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.migration import Phase
from cyborg_lite.errors.daemons import SchemaOutdated
from tests.builders.next_release.schema import (
    CONTRACTION,
    EXPANSION,
    NEWEST,
    copy_migrations,
)

Columns = dict[tuple[str, str], Any]
_SET_REVISION: Final = 'UPDATE alembic_version SET version_num = :number'


def read_columns(url: str) -> Columns:
    """Return type, nullability and default of each column, by table and name."""
    engine = sa.create_engine(url)
    inspector = sa.inspect(engine)
    columns = {
        (table, column['name']): (
            str(column['type']),
            column['nullable'],
            column['default'],
        )
        for table in inspector.get_table_names()
        for column in inspector.get_columns(table)
    }
    engine.dispose()
    return columns


@pytest.fixture(autouse=True)
def next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give this process the migrations of the next release."""
    scripts = copy_migrations(tmp_path / 'migrations')
    monkeypatch.setattr(migration, 'script_location', lambda: scripts)
    monkeypatch.setattr(schema_check, 'REQUIRED_REVISION', EXPANSION)


def test_list_revisions_reads_declared_phase() -> None:
    phases = {item.number: item.phase for item in migration.list_revisions()}
    assert (phases[EXPANSION], phases[CONTRACTION]) == (Phase.EXPAND, Phase.CONTRACT)


def test_expanding_revisions_drop_and_rename_nothing(empty_url: str) -> None:
    """A daemon that does not know a new column must still insert rows."""
    first, *later = migration.list_revisions()
    migration.upgrade(empty_url, first.number)
    before = read_columns(empty_url)
    for revision in later:
        migration.upgrade(empty_url, revision.number)
        after = read_columns(empty_url)
        if revision.phase is Phase.EXPAND:
            assert before.items() <= after.items(), revision
            tables = {table for table, _name in before}
            for (table, name), (_type, nullable, default) in after.items():
                if (table, name) not in before and table in tables:
                    assert nullable or default is not None, (revision, table, name)
        before = after


def test_interrupted_revisions_run_again(empty_url: str) -> None:
    """MariaDB commits each statement, but not the number of the revision."""
    first, *later = migration.list_revisions()
    migration.upgrade(empty_url, first.number)
    before = first
    for revision in later:
        migration.upgrade(empty_url, revision.number)
        columns = read_columns(empty_url)
        engine = sa.create_engine(empty_url)
        with engine.begin() as connection:
            connection.execute(sa.text(_SET_REVISION), {'number': before.number})
        engine.dispose()
        migration.upgrade(empty_url, revision.number)
        assert read_columns(empty_url) == columns
        before = revision


def test_expand_stops_before_contraction(empty_url: str) -> None:
    migration.upgrade(empty_url, NEWEST)
    target = migration.expand_target(empty_url)
    assert target == EXPANSION
    database = Database(empty_url)
    with pytest.raises(SchemaOutdated):
        database.read(schema_check.check_revision)
    assert not migration.is_expanded(empty_url)
    migration.upgrade(empty_url, target)
    assert migration.is_expanded(empty_url)
    assert migration.has_pending_contraction(empty_url)
    # The daemons of the next release start before the contraction.
    database.read(schema_check.check_revision)
    migration.upgrade(empty_url)
    assert not migration.has_pending_contraction(empty_url)
    database.read(schema_check.check_revision)
    database.close()


def test_expand_new_database_is_complete(empty_url: str) -> None:
    assert migration.expand_target(empty_url) == CONTRACTION
    assert not migration.has_pending_contraction(empty_url)
