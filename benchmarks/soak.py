# SPDX-License-Identifier: Apache-2.0
"""Memory, descriptors, threads and tables after many ARQ cycles.

A cycle creates an ARQ, binds it, waits for the event and deletes it. The host prepares
the handle. Some ARQs share an instance. API, conductor and agent run as processes::

    python -m benchmarks.soak --connection mysql+pymysql://root@127.0.0.1/soak \\
        --transport rabbit://guest:guest@127.0.0.1:5672/ --cycles 20000

The database must exist and be empty. Each line must be like the first one: growth from
line to line is what a cycle leaves behind.
"""

import argparse
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from sqlalchemy import Engine, create_engine, inspect, text

from devstack.launcher.processes import Child
from tests.chaos.faulty_cloud import FaultyCloud
from tests.chaos.files_driver import UNITS
from tests.servers.stack import Instance, expect

FaultyCloud.forks = False

_BATCH: Final = 400
_CLASS: Final = 'VGPU'  # of the driver whose handles the host prepares
_KIB: Final = 1024
# The audit deletes former servers. Its grace is as short as possible.
_AUDITS: Final = {'audit_interval': 60, 'orphan_grace': 60}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description='What ARQ cycles leave behind.')
    parser.add_argument('--connection', required=True)
    parser.add_argument('--transport', required=True)
    parser.add_argument('--cycles', type=int, default=20_000)
    parser.add_argument('--every', type=int, default=2_000, help='cycles per line')
    parser.add_argument('--arqs', type=int, default=4, help='ARQs per instance')
    arguments = parser.parse_args()
    engine = create_engine(arguments.connection)
    with tempfile.TemporaryDirectory() as folder:
        cloud = FaultyCloud(Path(folder), arguments.transport, arguments.connection)
        cloud.configure({'conductor': _AUDITS})
        with cloud:
            cloud.migrate()
            daemons = [cloud.start(name) for name in ('conductor', 'agent', 'api')]
            for number in run(cloud, arguments):
                text = '; '.join(describe(daemons, engine))
                print(f'{number} cycles: {text}', flush=True)
    engine.dispose()


def run(cloud: FaultyCloud, arguments: argparse.Namespace) -> Iterator[int]:
    """Run cycles in batches; yield their number after each multiple of ``every``."""
    count = arguments.arqs
    provider, profile = cloud.provider_of(_CLASS), cloud.create_profile(_CLASS, count)

    def run_cycle(_: int) -> None:
        instance = Instance(cloud, provider, {_CLASS: count})
        instance.create_arqs(profile)
        instance.allocate()
        expect(instance.bind(), 202)
        cloud.until(instance.is_resolved)
        instance.delete()

    with ThreadPoolExecutor(max(1, UNITS // count // 2)) as pool:
        for number in range(_BATCH, arguments.cycles + 1, _BATCH):
            list(pool.map(run_cycle, range(_BATCH // count)))
            cloud.nova.posts.clear()  # the receiver would grow, not the service
            cloud.until(lambda: not cloud.states(), 'all ARQs are deleted')
            if number % arguments.every == 0:
                cloud.settle()
                yield number


def describe(daemons: list[Child], engine: Engine) -> Iterator[str]:
    """Yield the resources of each daemon, and the tables that have rows."""
    for daemon in daemons:
        pids = [Path(f'/proc/{pid}') for pid in daemon.group.members()]
        memory = sum(read_status(pid, 'VmRSS') for pid in pids)
        threads = sum(read_status(pid, 'Threads') for pid in pids)
        descriptors = sum(len(list((pid / 'fd').iterdir())) for pid in pids)
        yield (
            f'{daemon.name} {memory / _KIB:.1f} MiB, {descriptors} descriptors, '
            f'{threads} threads'
        )
    with engine.connect() as connection:
        for table in sorted(inspect(engine).get_table_names()):
            rows = connection.execute(text(f'SELECT count(*) FROM {table}')).scalar()
            if rows:
                yield f'{table} {rows}'


def read_status(directory: Path, name: str) -> int:
    """Return a number of ``/proc/PID/status``; memory in KiB."""
    lines = (directory / 'status').read_text().splitlines()
    (value,) = (line.split()[1] for line in lines if line.startswith(f'{name}:'))
    return int(value)


if __name__ == '__main__':
    main()
