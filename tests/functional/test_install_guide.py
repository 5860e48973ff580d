# SPDX-License-Identifier: Apache-2.0
"""Daemons with exactly the configuration that the install guide prints.

They use RabbitMQ, MariaDB, Keystone, and a Placement that accepts tokens only.
"""

from collections.abc import Iterator

import pytest

from tests.servers import rabbitmq
from tests.servers.databases import fresh_database
from tests.servers.installed_cloud import InstalledCloud
from tests.servers.keystone import RealKeystone, keystone
from tests.servers.stack import lines_of

__all__ = ['keystone']


@pytest.fixture(scope='module')
def cloud(
    keystone: RealKeystone, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InstalledCloud]:
    """Yield a controller and a host, configured as the page says."""
    database = fresh_database('mariadb')
    with (
        rabbitmq.virtual_host() as bus,
        InstalledCloud(
            tmp_path_factory.mktemp('installed'),
            keystone,
            transport_url=bus,
            connection=next(database),
        ) as created,
    ):
        created.migrate()
        created.start('conductor')
        created.start('agent')
        created.start('api')
        yield created
    next(database, None)


def test_install_guide_blocks_bind_and_release(cloud: InstalledCloud) -> None:
    instance = cloud.boot_bound('FPGA', 2)
    instance.end()
    for child in cloud.children:
        assert not lines_of(child, 'Traceback'), child.log
        assert not lines_of(child, ' WARNING cyborg_lite.conf'), child.log


def test_agent_without_broker_section_names_options(cloud: InstalledCloud) -> None:
    """RabbitMQ refuses other properties of an exchange or a queue."""
    cloud.omitted_sections = ('oslo_messaging_rabbit',)
    options = {'agent': {'state_path': cloud.directory / 'bare'}}
    child = cloud.begin('bare-agent', 'agent', options=options)
    cloud.children.remove(child)
    cloud.until(lambda: child.status is not None, 'the agent ends by itself')
    assert child.status == 1
    line = 'Section [oslo_messaging_rabbit] differs'
    assert 'rabbit_quorum_queue' in lines_of(child, line)[0]
    assert not lines_of(child, 'Traceback')
