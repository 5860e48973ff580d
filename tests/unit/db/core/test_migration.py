# SPDX-License-Identifier: Apache-2.0
"""Revisions and their scripts; for real upgrades see test_migration_upgrade.py."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cyborg_lite.db.core import migration, schema_check
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.migration import Phase
from cyborg_lite.errors.daemons import ConfigurationError, DatabaseError, SchemaOutdated
from tests.builders.next_release.schema import (
    CONTRACTION,
    EXPANSION,
    NEWEST,
    copy_migrations,
)

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


def test_script_location_prefers_packaged_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel contains the scripts; a checkout has them in its root folder."""
    module = tmp_path / 'cyborg_lite' / 'db' / 'core' / 'migration.py'
    monkeypatch.setattr(migration, '__file__', str(module))
    assert migration.script_location() == tmp_path / 'alembic'
    (module.parents[1] / 'migrations').mkdir(parents=True)
    assert migration.script_location() == module.parents[1] / 'migrations'


def test_list_revisions_ends_with_head() -> None:
    *earlier, last = migration.list_revisions()
    assert last.is_head
    assert last.number == migration.head_revision()
    assert not any(revision.is_head for revision in earlier)


def test_list_revisions_numbers_have_no_gaps() -> None:
    """The next number is known, so two branches collide at once."""
    numbers = [revision.number for revision in migration.list_revisions()]
    assert numbers == [f'{number:04}' for number in range(1, len(numbers) + 1)]


def test_upgrade_failing_revision_creates_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts = tmp_path / 'scripts'
    (scripts / 'versions').mkdir(parents=True)
    original = migration.script_location()
    for name in ('env.py', 'script.py.mako', 'versions/0001_initial_schema.py'):
        (scripts / name).write_bytes((original / name).read_bytes())
    (scripts / 'versions' / '0002_wrong.py').write_text(
        "'''Wrong.'''\n"
        'from alembic import op\n'
        "revision, down_revision = '0002', '0001'\n"
        'def upgrade():\n'
        "    op.execute('CREATE TABLE half (x INTEGER)')\n"
        "    op.execute('nonsense')\n"
    )
    monkeypatch.setattr(migration, 'script_location', lambda: scripts)
    url = f'sqlite:///{tmp_path}/file'
    with pytest.raises(DatabaseError):
        migration.upgrade(url)
    assert read_columns(url) == {}


def test_upgrade_invalid_url_raises_configuration_error() -> None:
    with pytest.raises(ConfigurationError):
        migration.upgrade('nonsense')


# --- rules of revisions, and the phases of an upgrade to the next release -----------


@pytest.fixture
def next_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give this process the migrations of the next release."""
    scripts = copy_migrations(tmp_path / 'migrations')
    monkeypatch.setattr(migration, 'script_location', lambda: scripts)
    monkeypatch.setattr(schema_check, 'REQUIRED_REVISION', EXPANSION)


@pytest.mark.usefixtures('next_release')
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


@pytest.mark.usefixtures('next_release')
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


@pytest.mark.usefixtures('next_release')
def test_expand_new_database_is_complete(empty_url: str) -> None:
    assert migration.expand_target(empty_url) == CONTRACTION
    assert not migration.has_pending_contraction(empty_url)
