# SPDX-License-Identifier: Apache-2.0
"""The schema in the database: which revision it has, and bringing it up to date."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import alembic.command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from oslo_db.sqlalchemy import engines
from sqlalchemy import Connection, event, text

from cyborg_lite.db import dialects, failures
from cyborg_lite.exceptions import InvalidInput

_LOCK: Final = 6666  # any number; ours alone in our own database
_LOCK_TIMEOUT: Final = 300  # seconds; another dbsync is at work
_ALONE: Final = {
    'mysql': f"SELECT GET_LOCK(CONCAT(DATABASE(), '.dbsync'), {_LOCK_TIMEOUT})",
    'postgresql': f'SELECT pg_advisory_lock({_LOCK})',
}


@dataclass(frozen=True, slots=True)
class Revision:
    number: str
    title: str
    is_head: bool


def script_location() -> Path:
    """The scripts beside this file in a wheel, or at the top of a checkout."""
    packaged = Path(__file__).parent / 'migrations'
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / 'alembic'


def upgrade(connection: str, revision: str = 'head') -> None:
    """Bring the schema to that revision; it may be called on any number of hosts.

    :raises ServiceUnavailable: the database does not answer
    :raises InvalidInput: there is no such revision
    """
    with _opened(connection) as opened:
        if opened.dialect.name in _ALONE:
            opened.execute(text(_ALONE[opened.dialect.name]))
            opened.commit()
        alembic.command.upgrade(_config(opened), revision)


def current(connection: str) -> str | None:
    """The revision that the database has; None: it has no schema of ours.

    :raises ServiceUnavailable: the database does not answer
    """
    with _opened(connection) as opened:
        return MigrationContext.configure(opened).get_current_revision()


def head() -> str:
    """The revision that this version of the product needs."""
    return ScriptDirectory.from_config(_config()).get_current_head() or ''


def history() -> tuple[Revision, ...]:
    """All revisions, oldest first."""
    scripts = ScriptDirectory.from_config(_config())
    revisions = [
        Revision(script.revision, script.doc, script.is_head)
        for script in scripts.walk_revisions()
    ]
    return tuple(reversed(revisions))


def create(connection: str, title: str) -> Path:
    """For developers: a new script with the difference between database and models.

    :raises InvalidInput: the database is not at the newest revision
    """
    number = f'{len(history()) + 1:04}'
    with _opened(connection) as opened:
        made = alembic.command.revision(
            _config(opened), message=title, autogenerate=True, rev_id=number
        )
    # One script, as no command hook of ours makes more.
    return Path(made.path)  # type: ignore[union-attr]


@contextlib.contextmanager
def _opened(connection: str) -> Iterator[Connection]:
    url = dialects.vetted(connection).render_as_string(hide_password=False)
    engine = engines.create_engine(url, max_retries=0)
    dialects.prepare(engine)
    if engine.dialect.name == 'sqlite':
        event.listen(engine, 'begin', dialects.begin_immediately)
    try:
        with engine.connect() as opened:
            yield opened
            # Whatever the driver thinks of it, the lock goes with the connection.
            opened.detach()
    except CommandError as error:
        raise InvalidInput(reason=f'{error}.') from error
    except failures.ANY as error:
        raise failures.translated(error) from error
    finally:
        engine.dispose()


def _config(opened: Connection | None = None) -> Config:
    """Built here, so that no ``alembic.ini`` has to be shipped and found."""
    config = Config(attributes={'connection': opened})
    config.set_main_option('script_location', str(script_location()))
    config.set_main_option('file_template', '%%(rev)s_%%(slug)s')
    return config
