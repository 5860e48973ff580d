# SPDX-License-Identifier: Apache-2.0
"""Revisions and their scripts; for real upgrades see test_migration_upgrade.py."""

from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from cyborg_lite.db.core import migration
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.daemons import ConfigurationError, DatabaseError


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f'sqlite:///{tmp_path}/file'


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


def test_current_revision_empty_database_is_none(url: str) -> None:
    assert migration.current_revision(url) is None


def test_upgrade_unknown_revision_is_rejected(url: str) -> None:
    with pytest.raises(InvalidInput, match='4711'):
        migration.upgrade(url, '4711')
    assert migration.current_revision(url) is None


def test_upgrade_failing_revision_creates_no_table(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    with pytest.raises(DatabaseError):
        migration.upgrade(url)
    engine = create_engine(url)
    with engine.connect() as connection:
        tables = connection.execute(text('SELECT name FROM sqlite_master')).all()
    engine.dispose()
    assert tables == []


def test_upgrade_invalid_url_raises_configuration_error() -> None:
    with pytest.raises(ConfigurationError):
        migration.upgrade('nonsense')
