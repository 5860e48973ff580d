# SPDX-License-Identifier: Apache-2.0
"""Expanding revisions keep everything that daemons of the previous release need."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cyborg_lite.db import migration, schema_check
from cyborg_lite.db.engine import Database
from cyborg_lite.db.migration import Phase, Revision
from cyborg_lite.exceptions import SchemaOutdated

_REVISIONS = migration.list_revisions()
Columns = dict[tuple[str, str], Any]


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


def test_expanding_revisions_drop_and_rename_nothing(tmp_path: Path) -> None:
    """A daemon that does not know a new column must still insert rows."""
    url = f'sqlite:///{tmp_path}/file'
    before: Columns = {}
    for revision in _REVISIONS:
        migration.upgrade(url, revision.number)
        after = read_columns(url)
        if revision.phase is Phase.EXPAND:
            assert before.items() <= after.items(), revision
            tables = {table for table, _name in before}
            for (table, name), (_type, nullable, default) in after.items():
                if (table, name) not in before and table in tables:
                    assert nullable or default is not None, (revision, table, name)
        before = after


@pytest.fixture
def _last_contracts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat the last revision as one that removes something."""
    *earlier, last = _REVISIONS
    contracting = Revision(last.number, last.title, last.is_head, Phase.CONTRACT)
    revisions = (*earlier, contracting)
    monkeypatch.setattr(migration, 'list_revisions', lambda: revisions)
    monkeypatch.setattr(schema_check, 'REQUIRED_REVISION', earlier[-1].number)


@pytest.mark.usefixtures('_last_contracts')
def test_expand_stops_before_contraction(tmp_path: Path) -> None:
    url = f'sqlite:///{tmp_path}/file'
    migration.upgrade(url, _REVISIONS[-3].number)
    target = migration.expand_target(url)
    assert target == _REVISIONS[-2].number
    database = Database(url)
    with pytest.raises(SchemaOutdated):
        database.read(schema_check.check_revision)
    migration.upgrade(url, target)
    assert migration.has_pending_contraction(url)
    # The daemons of this version start before the contraction.
    database.read(schema_check.check_revision)
    migration.upgrade(url)
    assert not migration.has_pending_contraction(url)
    database.read(schema_check.check_revision)
    database.close()


@pytest.mark.usefixtures('_last_contracts')
def test_expand_new_database_is_complete(tmp_path: Path) -> None:
    url = f'sqlite:///{tmp_path}/file'
    assert migration.expand_target(url) == migration.head_revision()
    assert not migration.has_pending_contraction(url)
