# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-dbsync online_data_migrations``: change rows while daemons run."""

from typing import Final

from oslo_config import cfg

from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.parsers import Parsers, add_command
from cyborg_lite.cmd.support.text_table import format_table
from cyborg_lite.db.core import migration, online_migrations
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.errors.base import Conflict
from cyborg_lite.model.hosts.services import Service, ServiceState
from cyborg_lite.version import VERSION

_BATCH: Final = 500  # rows of one transaction


def add_parsers(parsers: Parsers) -> None:
    parser = add_command(
        parsers,
        'online_data_migrations',
        'change existing rows in batches; the exit status is 1 if rows are left',
        _run,
    )
    parser.add_argument(
        '--max-count', type=_positive, metavar='ROWS', help='default: all rows'
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _run(conf: cfg.ConfigOpts) -> int:
    """Run all migrations, each batch in a transaction of its own.

    :returns: 1 if ``--max-count`` was reached and rows are left
    :raises Conflict: the schema lacks columns that this version adds
    """
    _check_expansion(conf.database.connection)
    remaining: int | None = conf.command.max_count
    rows: list[tuple[object, ...]] = [('MIGRATION', 'ROWS')]
    with database.open_database(conf) as db:
        for item in online_migrations.MIGRATIONS:
            count = _migrate(db, item, remaining)
            remaining = None if remaining is None else remaining - count
            rows.append((item.name, count))
        print(format_table(rows))
        unfinished = db.read(online_migrations.list_unfinished)
    if unfinished:
        print(f'Rows are left: {", ".join(unfinished)}. Run the command again.')
    return int(bool(unfinished))


def _migrate(
    db: Database, item: online_migrations.OnlineMigration, limit: int | None
) -> int:
    """Run one migration and return the number of changed rows.

    :param limit: of rows; None: none
    """
    total = 0
    while limit is None or total < limit:
        batch = _BATCH if limit is None else min(_BATCH, limit - total)
        count = db.write(item.migrate, batch)
        total += count
        if count < batch:
            break
    return total


def _check_expansion(connection: str) -> None:
    if not migration.is_expanded(connection):
        raise Conflict(
            reason='The schema lacks tables or columns that this version adds. '
            'Run cyborg-lite-dbsync upgrade --expand.'
        )


def check_contraction(conf: cfg.ConfigOpts) -> None:
    """Check that nothing needs the columns that a contraction removes.

    :raises Conflict: a daemon of another version runs, or rows are not migrated
    """
    if migration.current_revision(conf.database.connection) is None:
        return
    _check_expansion(conf.database.connection)
    with database.open_database(conf) as db:
        daemons = list_daemons_of_other_versions(db.read(services.list_services))
        unfinished = db.read(online_migrations.list_unfinished)
    if daemons:
        reason = f'Daemons of another version run: {", ".join(daemons)}.'
        raise Conflict(reason=reason)
    if unfinished:
        raise Conflict(
            reason=f'Rows are not migrated: {", ".join(unfinished)}. '
            'Run cyborg-lite-dbsync online_data_migrations.'
        )


def list_daemons_of_other_versions(daemons: tuple[Service, ...]) -> list[str]:
    """Return a text for each running daemon of another version."""
    return [
        f'{daemon.binary} on {daemon.host} ({daemon.version})'
        for daemon in daemons
        if daemon.state is ServiceState.UP and daemon.version != VERSION
    ]
