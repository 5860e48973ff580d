# SPDX-License-Identifier: Apache-2.0
"""Database connections of the entry points, from the configuration."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from oslo_config import cfg

from cyborg_lite import runtime
from cyborg_lite.db.core import incarnations
from cyborg_lite.db.core.dialects import refuse_blocking_driver
from cyborg_lite.db.core.engine import Database


def from_configuration(conf: cfg.ConfigOpts) -> Database:
    """Return the configured database, without connecting to it.

    :raises ConfigurationError: if the URL names an unsupported database, or a driver
        that does not work with the chosen concurrency
    """
    section = conf.database
    refuse_blocking_driver(section.connection, runtime.BACKEND)
    options: dict[str, Any] = {  # values of several types
        'max_overflow': section.max_overflow,
        'pool_timeout': section.pool_timeout,
        'connection_recycle_time': section.connection_recycle_time,
    }
    if section.mysql_wsrep_sync_wait is not None:
        options['mysql_wsrep_sync_wait'] = section.mysql_wsrep_sync_wait
    return Database(
        section.connection,
        max_pool_size=section.max_pool_size,
        notifies=conf.notifications.enabled,
        **options,
    )


@contextmanager
def open_database(conf: cfg.ConfigOpts) -> Iterator[Database]:
    """Open the configured database for one command and close it afterwards.

    :raises ConfigurationError: see ``from_configuration``
    """
    database = from_configuration(conf)
    try:
        yield database
    finally:
        database.close()


def list_doubts(database: Database, *, applies: bool) -> tuple[str, ...]:
    """Return why the content of the database is not to be trusted; empty: it is.

    :param applies: the command acts on the content
    :raises DatabaseQuarantined: the command must not act
    """
    if applies:
        database.read(incarnations.check_trusted)
    quarantine = database.read(incarnations.find_quarantine)
    if quarantine is None:
        return ()
    return (
        f'The database has lost changes, so this list is incomplete: '
        f'{quarantine.reason} Run cyborg-lite-manage recover.',
    )
