# SPDX-License-Identifier: Apache-2.0
"""Revisions of the database schema: show and upgrade."""

import contextlib
import enum
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

from cyborg_lite.db.core import dialects, failures
from cyborg_lite.errors.base import Conflict, InvalidInput

_LOCK: Final = 6666  # any number, as no other program uses this database
_LOCK_TIMEOUT: Final = 300  # seconds to wait for another dbsync
_LOCK_STATEMENTS: Final = {
    'mysql': f"SELECT GET_LOCK(CONCAT(DATABASE(), '.dbsync'), {_LOCK_TIMEOUT})",
    'postgresql': f'SELECT pg_advisory_lock({_LOCK})',
}


class Phase(enum.StrEnum):
    """The phase of a rolling upgrade in which a revision may run."""

    EXPAND = 'expand'
    """Only adds: daemons of the previous release keep working."""
    CONTRACT = 'contract'
    """Removes or renames: all daemons must be of this release."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision of the schema."""

    number: str
    title: str
    is_head: bool
    phase: Phase = Phase.EXPAND


def script_location() -> Path:
    """Return the folder of the revisions: in the wheel, or at the top of a checkout."""
    packaged = Path(__file__).parents[1] / 'migrations'
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / 'alembic'


def upgrade(connection: str, revision: str = 'head') -> None:
    """Upgrade the schema. Concurrent calls on several hosts wait for each other.

    :raises ServiceUnavailable: the database does not answer
    :raises InvalidInput: the revision does not exist
    :raises Conflict: another call has not ended in time
    """
    with _connect(connection) as connected:
        _lock(connected)
        alembic.command.upgrade(_config(connected), revision)


def _lock(connected: Connection) -> None:
    """Wait for the other calls; the end of the connection releases the lock."""
    dialect = connected.dialect.name
    if dialect not in _LOCK_STATEMENTS:
        return
    answer = connected.execute(text(_LOCK_STATEMENTS[dialect])).scalar()
    connected.commit()
    if dialect == 'mysql' and answer != 1:
        raise Conflict(
            reason=f'Another upgrade of the schema has run for {_LOCK_TIMEOUT} s.'
        )


def current_revision(connection: str) -> str | None:
    """Return the revision of the database, or None if it has no schema.

    :raises ServiceUnavailable: the database does not answer
    """
    with _connect(connection) as connected:
        return MigrationContext.configure(connected).get_current_revision()


def expand_target(connection: str) -> str:
    """Return the newest revision that a database can reach without a contraction."""
    current = current_revision(connection)
    if current is None:
        return head_revision()  # a new database has no daemons
    target = current
    for revision in _list_pending(current):
        if revision.phase is Phase.CONTRACT:
            break
        target = revision.number
    return target


def has_pending_contraction(connection: str) -> bool:
    """Check whether a revision that removes or renames has not run."""
    current = current_revision(connection)
    return current is not None and any(
        revision.phase is Phase.CONTRACT for revision in _list_pending(current)
    )


def is_expanded(connection: str) -> bool:
    """Check whether the schema has all that the daemons of this version require."""
    current = current_revision(connection)
    return current is not None and all(
        revision.phase is Phase.CONTRACT for revision in _list_pending(current)
    )


def _list_pending(current: str) -> list[Revision]:
    """Return the revisions after ``current``; empty if it is of a later release."""
    revisions = list(list_revisions())
    numbers = [revision.number for revision in revisions]
    return revisions[numbers.index(current) + 1 :] if current in numbers else []


def head_revision() -> str:
    """Return the newest revision."""
    return ScriptDirectory.from_config(_config()).get_current_head() or ''


def list_revisions() -> tuple[Revision, ...]:
    """Return all revisions, oldest first."""
    scripts = ScriptDirectory.from_config(_config())
    revisions = [
        Revision(
            script.revision,
            script.doc,
            script.is_head,
            Phase(getattr(script.module, 'phase', Phase.EXPAND)),  # default: it adds
        )
        for script in scripts.walk_revisions()
    ]
    return tuple(reversed(revisions))


def create_revision(connection: str, title: str) -> Path:
    """Write a new revision with the difference between the database and the models.

    For developers.

    :raises InvalidInput: the database is not at the newest revision
    """
    number = f'{len(list_revisions()) + 1:04}'
    with _connect(connection) as connected:
        script = alembic.command.revision(
            _config(connected), message=title, autogenerate=True, rev_id=number
        )
    return Path(script.path)  # type: ignore[union-attr]  # a list needs a command hook


@contextlib.contextmanager
def _connect(connection: str) -> Iterator[Connection]:
    url = dialects.validate_url(connection).render_as_string(hide_password=False)
    engine = engines.create_engine(url, max_retries=0)
    dialects.configure_connections(engine)
    if engine.dialect.name == 'sqlite':
        event.listen(engine, 'begin', dialects.begin_immediately)
    try:
        with engine.connect() as connected:
            yield connected
            # The pool must not reuse the connection: closing it releases the lock.
            connected.detach()
    except CommandError as error:
        raise InvalidInput(reason=f'{error}.') from error
    except failures.DATABASE_ERRORS as error:
        raise failures.translate_error(error) from error
    finally:
        engine.dispose()


def _config(connection: Connection | None = None) -> Config:
    """Build the configuration of Alembic in code, without ``alembic.ini``."""
    config = Config(attributes={'connection': connection})
    config.set_main_option('script_location', str(script_location()))
    config.set_main_option('file_template', '%%(rev)s_%%(slug)s')
    return config
