# SPDX-License-Identifier: Apache-2.0
"""The database as the configuration has it, for the entry points that open it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from oslo_config import cfg

from cyborg_lite import runtime
from cyborg_lite.db.dialects import refuse_blocking_driver
from cyborg_lite.db.engine import Database


def configured(conf: cfg.ConfigOpts) -> Database:
    """Not opened yet.

    :raises ConfigurationError: the address is not one of a database we can use, or
        not with the concurrency that was chosen
    """
    section = conf.database
    refuse_blocking_driver(section.connection, runtime.BACKEND)
    options: dict[str, Any] = {  # each has a type of its own
        'max_overflow': section.max_overflow,
        'pool_timeout': section.pool_timeout,
        'connection_recycle_time': section.connection_recycle_time,
    }
    if section.mysql_wsrep_sync_wait is not None:
        options['mysql_wsrep_sync_wait'] = section.mysql_wsrep_sync_wait
    return Database(section.connection, max_pool_size=section.max_pool_size, **options)


@contextmanager
def opened(conf: cfg.ConfigOpts) -> Iterator[Database]:
    """For a command that does one thing with it.

    :raises ConfigurationError: as above
    """
    of_command = configured(conf)
    try:
        yield of_command
    finally:
        of_command.close()
