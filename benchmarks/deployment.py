# SPDX-License-Identifier: Apache-2.0
"""Daemons, database and message bus of a benchmark, on the servers of the tests."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from unittest import mock

from oslo_config import cfg

from cyborg_lite.rpc import transport
from tests.servers import rabbitmq
from tests.servers.databases import fresh_database
from tests.servers.stack import Cloud

Cloud.forks = False

# As in the systemd units.
_ALLOCATOR: Final = {
    'MALLOC_ARENA_MAX': '1',
    'MALLOC_TRIM_THRESHOLD_': '131072',
    'GLIBC_TUNABLES': 'glibc.malloc.tcache_count=0',
}


@contextmanager
def create_cloud(kind: str, directory: Path) -> Iterator[tuple[Cloud, str, str]]:
    """Create a cloud; yield it with the URLs of its message bus and database."""
    with ExitStack() as cleanup:
        cleanup.enter_context(mock.patch.dict(os.environ, _ALLOCATOR))
        url = cleanup.enter_context(rabbitmq.virtual_host())
        database = fresh_database(kind)
        connection = next(database)
        cleanup.callback(next, database, None)
        # The simulated agents share a connection and have no keys.
        options = {'DEFAULT': {'message_signatures': 'optional'}}
        cloud = Cloud(
            directory, transport_url=url, connection=connection, options=options
        )
        cleanup.enter_context(cloud)
        cloud.migrate()
        yield cloud, url, connection


def connect(url: str, directory: Path) -> transport.Transport:
    """Connect the simulated agents to the message bus."""
    file = directory / 'agents.conf'
    file.write_text(f'[DEFAULT]\ntransport_url = {url}\nrpc_response_timeout = 60\n')
    conf = cfg.ConfigOpts()
    conf(['--config-file', str(file)])
    return transport.connect(conf)
