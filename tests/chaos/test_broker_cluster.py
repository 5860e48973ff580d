# SPDX-License-Identifier: Apache-2.0
"""A node of a RabbitMQ cluster is killed; the other nodes lose nothing."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.broker_cluster import RECOMMENDED, NodeCluster, node_cluster
from tests.chaos.clients import Client, Ledger, new_seed, offers
from tests.chaos.faulty_cloud import FaultyCloud, run_cloud
from tests.servers.stack import ROOT

INSTANCES: Final = 24
CLIENTS: Final = 4


@pytest.fixture
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeCluster]:
    with node_cluster(tmp_path_factory.mktemp('nodes')) as nodes:
        yield nodes


def test_recommended_options_are_those_of_install_guide() -> None:
    guide = (ROOT / 'doc' / 'source' / 'install.rst').read_text()
    section = guide.partition('[oslo_messaging_rabbit]\n')[2].partition('\n\n')[0]
    lines = [f'{name} = {str(value).lower()}' for name, value in RECOMMENDED.items()]
    assert [line.strip() for line in section.splitlines()] == lines


def test_broker_node_killed_and_restarted_loses_nothing(
    tmp_path: Path, nodes: NodeCluster
) -> None:
    cloud = FaultyCloud(tmp_path, nodes.url, f'sqlite:///{tmp_path}/db.sqlite')
    cloud.configure({'oslo_messaging_rabbit': RECOMMENDED})
    with run_cloud(cloud):
        cloud.start('conductor')
        ledger, requests = Ledger(), offers(cloud, 'FPGA', 'VGPU')

        def serve() -> None:
            with ThreadPoolExecutor(CLIENTS) as pool:
                for number in range(INSTANCES):
                    client = Client(cloud, ledger, new_seed())
                    pool.submit(client.serve, requests[number % len(requests)])

        serving = threading.Thread(target=serve)
        serving.start()
        for node in nodes.nodes:
            node.end()
            node.start()
        serving.join()
        cloud.settle()
        assert ledger.faults == []
        assert ledger.answers['completed'] == INSTANCES
        assert cloud.owners() == cloud.list_prepared_arqs() == []
        assert not cloud.states()
