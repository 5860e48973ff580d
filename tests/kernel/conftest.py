# SPDX-License-Identifier: Apache-2.0
"""The cloud of this suite: one virtual machine has the agent."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from tests.kernel.host import Host, build_variables
from tests.kernel.image import build_image
from tests.kernel.machine import Machine
from tests.servers.databases import REQUIRED, fresh_database
from tests.servers.rabbitmq import virtual_host
from tests.servers.stack import Cloud

_TOOLS: Final = ('qemu-system-x86_64', 'mmdebstrap', 'mke2fs')


@pytest.fixture(scope='session')
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """Start the cloud and the machine with the first test that asks for it."""
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing or os.geteuid():
        reason = f'root is required, and the programs {", ".join(_TOOLS)}'
        if os.environ.get(REQUIRED) == '1':
            pytest.fail(reason)
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp('kernel')
    with (
        virtual_host() as transport,
        contextmanager(fresh_database)('mariadb') as connection,
        Cloud(directory, transport_url=transport, connection=connection) as cloud,
    ):
        files = directory / 'image'
        files.mkdir()
        image = build_image(files, build_variables(cloud, transport))
        cloud.migrate()
        cloud.start('conductor')
        cloud.start('api')
        with Machine(image, files) as machine:
            host = Host(cloud, machine)
            host.use_drives()
            host.start_agent()
            yield host
