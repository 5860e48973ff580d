# SPDX-License-Identifier: Apache-2.0
"""RabbitMQ cluster of three nodes on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.chaos.broker import OwnNode, skip_without_program

_NODES: Final = 3

RECOMMENDED: Final[dict[str, object]] = {
    'rabbit_quorum_queue': True,
    'rabbit_transient_quorum_queue': True,
    'rabbit_stream_fanout': True,
    'rabbit_qos_prefetch_count': 16,
    'use_queue_manager': True,
    'kombu_reconnect_splay': 2,
}
"""Section [oslo_messaging_rabbit] of the install guide."""


class NodeCluster:
    """Nodes that replicate their queues."""

    def __init__(self, directory: Path) -> None:
        home = directory / 'cluster'
        home.mkdir()
        cookie = home / '.erlang.cookie'
        cookie.touch(0o400)
        cookie.chmod(0o600)
        cookie.write_text('CHAOS')
        cookie.chmod(0o400)
        self.nodes = [OwnNode(self._create(home, n), home) for n in range(_NODES)]
        members = [
            f'cluster_formation.classic_config.nodes.{number} = {node.name}'
            for number, node in enumerate(self.nodes, 1)
        ]
        for node in self.nodes:
            node.settings = [
                'cluster_formation.peer_discovery_backend = classic_config',
                'cluster_formation.discovery_retry_limit = 1',
                *members,
            ]

    @staticmethod
    def _create(home: Path, number: int) -> Path:
        directory = home / f'node{number}'
        directory.mkdir()
        return directory

    @property
    def url(self) -> str:
        return f'rabbit://{",".join(node.address for node in self.nodes)}/'

    def start(self) -> None:
        """Start the first node, which the next nodes join."""
        self.nodes[0].start()
        for node in self.nodes[1:]:
            node.begin()
        for node in self.nodes[1:]:
            node.wait()

    def end(self) -> None:
        for node in self.nodes:
            node.end()


@contextmanager
def node_cluster(directory: Path) -> Iterator[NodeCluster]:
    """Run a cluster; skip the test if RabbitMQ is not installed."""
    skip_without_program()
    cluster = NodeCluster(directory)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()
