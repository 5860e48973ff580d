# SPDX-License-Identifier: Apache-2.0
"""Finding the scripts and telling revisions apart; see also tests/functional/db."""

from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from cyborg_lite.db import migration
from cyborg_lite.exceptions import ConfigurationError, DatabaseError, InvalidInput


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f'sqlite:///{tmp_path}/file'


def test_scripts_beside_the_module_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a wheel; a checkout has them at its top."""
    module = tmp_path / 'cyborg_lite' / 'db' / 'migration.py'
    monkeypatch.setattr(migration, '__file__', str(module))
    assert migration.script_location() == tmp_path / 'alembic'
    (module.parent / 'migrations').mkdir(parents=True)
    assert migration.script_location() == module.parent / 'migrations'


def test_history_ends_with_the_newest_revision() -> None:
    *others, last = migration.history()
    assert last.is_head
    assert last.number == migration.head()
    assert not any(revision.is_head for revision in others)


def test_revisions_are_numbered_without_gaps() -> None:
    """So that the next number is known, and two branches collide at once."""
    numbers = [revision.number for revision in migration.history()]
    assert numbers == [f'{number:04}' for number in range(1, len(numbers) + 1)]


def test_an_empty_database_has_no_revision(url: str) -> None:
    assert migration.current(url) is None


def test_an_unknown_revision_is_refused_and_nothing_is_made(url: str) -> None:
    with pytest.raises(InvalidInput, match='4711'):
        migration.upgrade(url, '4711')
    assert migration.current(url) is None


def test_a_revision_that_fails_leaves_nothing_behind(
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


def test_a_wrong_address_is_told() -> None:
    with pytest.raises(ConfigurationError):
        migration.upgrade('nonsense')
