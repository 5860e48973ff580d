# SPDX-License-Identifier: Apache-2.0
"""The connections and queues of an agent at RabbitMQ.

Usage: ``python -m benchmarks.connections --help``

One conductor and several real agents run with the broker section of the installation
guide. The numbers of an agent are those of all agents after the first one, divided by
their number, so that what all agents share counts as nothing.

The benchmark requires ``rabbitmqctl`` and the servers of the functional tests.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.deployment import create_cloud
from tests.servers import rabbitmq
from tests.servers.stack import Cloud

Cloud.forks = False

# As in the installation guide.
_BROKER: Final = {
    'rabbit_quorum_queue': True,
    'rabbit_transient_quorum_queue': True,
    'rabbit_stream_fanout': True,
    'rabbit_qos_prefetch_count': 16,
    'use_queue_manager': True,
}
_SETTLING: Final = 10.0  # seconds until an agent has sent several heartbeats


def start_agents(cloud: Cloud, first: int, number: int) -> None:
    """Start agents of hosts of their own, and wait until they have reported."""
    for index in range(first, first + number):
        if index:
            cloud.next_host()
        name = f'agent-{index}'
        cloud.configure(
            {
                'agent': {'state_path': cloud.directory / name},
                # The reply queues of daemons of one host differ by this name.
                'oslo_messaging_rabbit': {**_BROKER, 'processname': name},
            }
        )
        cloud.start('agent', name=name)
        cloud.provider_of('FPGA')
    time.sleep(_SETTLING)


def count(url: str) -> tuple[int, int]:
    """Return the numbers of connections and queues of the virtual host."""
    return len(rabbitmq.list_connections(url)), len(rabbitmq.list_queues(url))


def run(agents: int, directory: Path) -> None:
    """Print the numbers of an agent."""
    with create_cloud('mariadb', directory) as (cloud, url, _connection):
        cloud.configure({'oslo_messaging_rabbit': _BROKER})
        cloud.start('conductor')
        start_agents(cloud, 0, 1)
        before = count(url)
        start_agents(cloud, 1, agents - 1)
        connections, queues = (
            (later - earlier) / (agents - 1)
            for earlier, later in zip(before, count(url), strict=True)
        )
    print(f'{agents} agents, each with')
    print(f'  connections                    {connections:9.1f}')
    print(f'  queues                         {queues:9.1f}')


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--agents', type=int, default=5, help='at least 2')
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='connections-') as directory:
        run(max(2, arguments.agents), Path(directory))
    return 0


if __name__ == '__main__':
    sys.exit(main())
