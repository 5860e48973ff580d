# SPDX-License-Identifier: Apache-2.0
"""The CPU time of lists, and the memory of the daemons before and after long ones.

Usage: ``python -m benchmarks.lists --help``

One API process and one conductor process, or one controller process, list devices and
ARQs, with a real message bus and a real database. The CPU time is the sum of the
processes. The floor of a page is a request without any work, the rows as the database
driver returns them, and one JSON encoding for the message, one decoding and one
encoding for the response.

A device profile is read by its name as Nova does it, with many stored profiles. Its
floor is a request without any work, an RPC without any work unless one process runs
API and conductor, and the row as the database driver returns it.

The benchmark requires the RabbitMQ and database servers of the functional tests. CPU
times are only comparable with the floor of the same run.
"""

import argparse
import http.client
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import Select, delete, insert, select, update
from sqlalchemy.orm import Session

from benchmarks.deployment import connect, create_cloud
from benchmarks.process_cost import Meter
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import (
    Arq,
    AttachHandle,
    Deployable,
    Device,
    DeviceProfile,
    Job,
)
from cyborg_lite.db.inventory import reports
from cyborg_lite.rpc.client import connect_conductor, is_reachable
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.interface import Conductor
from tests.builders.bound_arqs import add_bound_arqs
from tests.builders.reports import HOST, host
from tests.servers.stack import ADMIN, Cloud

Cloud.forks = False

_CARDS: Final = 8  # per host
_BATCH: Final = 5_000
_DEVICES: Final = '/v2/devices'
_ARQS: Final = '/v2/accelerator_requests'
_PROFILES: Final = '/v2/device_profiles'
_PAGE: Final = 1000
_MANY: Final = 200  # requests of which one is too short for the clock of /proc
_NEWEST: Final = 'accelerator latest'
_OLDEST: Final = 'accelerator 2.0'
_MEGABYTE: Final = 10**6


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of the benchmark."""

    devices: int
    arqs: int  # the first ones own the handles of the devices
    profiles: int
    repetitions: int  # of each list


@dataclass(frozen=True, slots=True)
class Listing:
    """A list that a client requests."""

    title: str
    path: str
    version: str = _NEWEST

    @property
    def member(self) -> str:
        """Name of the list in the response."""
        if self.path.startswith(_PROFILES):
            return 'device_profiles'
        return 'devices' if self.path.startswith(_DEVICES) else 'arqs'


_LISTINGS: Final = (
    Listing('1,000 devices', f'{_DEVICES}?limit={_PAGE}'),
    Listing('1,000 devices, 2.0', f'{_DEVICES}?limit={_PAGE}', _OLDEST),
    Listing('1,000 ARQs', f'{_ARQS}?limit={_PAGE}'),
    Listing('1,000 ARQs, 2.0', f'{_ARQS}?limit={_PAGE}', _OLDEST),
    Listing('all devices, 2.0', _DEVICES, _OLDEST),
)


# --- rows ---------------------------------------------------------------------------


def fill(database: Database, cloud: Cloud, plan: Plan) -> str:
    """Store devices with one handle each, ARQs that own handles, and profiles.

    :returns: the name of a device profile
    """
    database.write(_store_device)
    for table in (Device, Deployable, AttachHandle):
        database.write(_copy_row, table, plan.devices - 1)
    profile = cloud.create_profile('PGPU')
    for begin in range(0, plan.arqs, _BATCH):
        database.write(add_bound_arqs, profile, min(_BATCH, plan.arqs - begin))
    database.write(_assign_handles)
    database.write(_copy_row, DeviceProfile, plan.profiles - 1)
    return profile


def _store_device(session: Session) -> None:
    """Store a host with a device, without a Placement sync job."""
    reports.store_report(session, host(1, 1))
    session.execute(delete(Job).where(Job.key == HOST))


# Any: a class of `tables`.
def _copy_row(session: Session, table: Any, number: int) -> None:
    """Copy the only row, with new ids and with values that must be unique."""
    columns = table.__table__.columns
    row = session.execute(select(table.__table__)).mappings().one()
    references = {'id', 'root_id', 'device_id', 'deployable_id'} & {*columns.keys()}
    copies = []
    for shift in range(1, number + 1):
        copy = {**row, 'uuid': str(uuid4())}
        copy |= {name: row[name] + shift for name in references if row[name]}
        if table is DeviceProfile:
            copy['name'] = f'profile-{shift}'
        if table is Device:
            copy['hostname'] = f'host-{shift // _CARDS:05d}'
            copy['hardware_id'] = f'serial-{shift}'
        copies.append(copy | ({'rp_uuid': None} if 'rp_uuid' in columns else {}))
    session.execute(insert(table.__table__), copies)


def _assign_handles(session: Session) -> None:
    handles = session.scalars(select(AttachHandle.id).order_by(AttachHandle.id))
    arqs = session.scalars(select(Arq.uuid).order_by(Arq.id))
    pairs = [
        {'id': handle, 'arq_uuid': uuid}
        for handle, uuid in zip(handles, arqs, strict=False)
    ]
    session.execute(update(AttachHandle), pairs)


# --- lists --------------------------------------------------------------------------


class Client:
    """A client with a persistent connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection('127.0.0.1', port)

    def read(self, path: str, version: str = _NEWEST) -> Any:
        """Return the decoded JSON of a response, of any type."""
        headers = {**ADMIN, 'OpenStack-API-Version': version}
        self._connection.request('GET', path, headers=headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise SystemExit(f'{path}: {answer.status} {content.decode()}')
        return json.loads(content)


class Measurement:
    """Measures lists with the daemons of a cloud."""

    def __init__(
        self, client: Client, database: Database, meters: Sequence[Meter]
    ) -> None:
        self._client = client
        self._database = database
        self._meters = meters

    def measure(self, listing: Listing, repetitions: int) -> Iterator[float]:
        """Yield the CPU milliseconds of API and conductor for each repetition."""
        self._client.read(listing.path, listing.version)
        for _ in range(repetitions):
            yield self._time(listing.path, listing.version)

    def measure_profile(self, listing: Listing, repetitions: int) -> Iterator[float]:
        """Yield the CPU milliseconds of a short list for each repetition."""
        for _ in range(repetitions):
            yield self._time(listing.path, listing.version, _MANY)

    def measure_call(self, conductor: Conductor) -> float:
        """Return the CPU milliseconds of an RPC without any work, of both sides."""
        is_reachable(conductor, daemon_context())
        before = time.process_time() + sum(meter.read_cpu() for meter in self._meters)
        for _ in range(_MANY):
            is_reachable(conductor, daemon_context())
        after = time.process_time() + sum(meter.read_cpu() for meter in self._meters)
        return (after - before) * 1e3 / _MANY

    def _time(self, path: str, version: str = _NEWEST, number: int = 5) -> float:
        """Return the average CPU milliseconds of some requests."""
        before = sum(meter.read_cpu() for meter in self._meters)
        for _ in range(number):
            self._client.read(path, version)
        return (sum(meter.read_cpu() for meter in self._meters) - before) * 1e3 / number

    def measure_floor(self, listing: Listing) -> float:
        """Return the CPU milliseconds that a list needs at least."""
        answer = self._client.read(listing.path, listing.version)
        statement = _STATEMENTS[listing.member].limit(len(answer[listing.member]))
        before = time.thread_time()
        self._database.read(_read_rows, statement)
        json.dumps(json.loads(json.dumps(answer)))
        own = (time.thread_time() - before) * 1e3
        return own + self._time('/v2', number=_MANY)


_STATEMENTS: Final[dict[str, Select[*tuple[Any, ...]]]] = {
    'device_profiles': select(DeviceProfile.__table__),
    'devices': select(Device.__table__),
    'arqs': select(Arq.__table__, AttachHandle.__table__).outerjoin(
        AttachHandle, AttachHandle.arq_uuid == Arq.uuid
    ),
}


def _read_rows(session: Session, statement: Select[*tuple[Any, ...]]) -> int:
    """Read rows with the cursor of the database driver; return their number."""
    connection = session.connection()
    text = str(statement.compile(connection, compile_kwargs={'literal_binds': True}))
    with connection.connection.cursor() as cursor:
        cursor.execute(text)
        return len(cursor.fetchall())


# --- the benchmark ------------------------------------------------------------------


def run(plan: Plan, kind: str, directory: Path, daemons: Sequence[str]) -> None:
    """Measure the lists and print them."""
    with create_cloud(kind, directory) as (cloud, url, connection):
        meters = {name: Meter(cloud.start(name)) for name in daemons}
        _print_memory('at rest', meters)
        database = Database(connection)
        try:
            profile = fill(database, cloud, plan)
            client = Client(cloud.port)
            measurement = Measurement(client, database, list(meters.values()))
            print(
                f'\n{"CPU ms":<20} {"median":>8} {"least":>8} {"most":>8} {"floor":>8}'
            )
            for listing in _LISTINGS:
                costs = list(measurement.measure(listing, plan.repetitions))
                floor = measurement.measure_floor(listing)
                _print_costs(listing, costs, floor)
            path = f'{_PROFILES}?name={profile}'
            listing = Listing(f'1 of {plan.profiles:,} profiles', path, _OLDEST)
            costs = list(measurement.measure_profile(listing, plan.repetitions))
            floor = measurement.measure_floor(listing)
            if 'controller' not in daemons:
                bus = connect(url, directory)
                floor += measurement.measure_call(connect_conductor(bus))
                bus.cleanup()
            _print_costs(listing, costs, floor)
            print()
            _print_memory('after lists', meters)
        finally:
            database.close()


def _print_costs(listing: Listing, costs: Sequence[float], floor: float) -> None:
    numbers = (statistics.median(costs), min(costs), max(costs), floor)
    print(listing.title.ljust(20), *(f'{cost:8.1f}' for cost in numbers), flush=True)


def _print_memory(moment: str, meters: Mapping[str, Meter]) -> None:
    for name, meter in meters.items():
        shares = ' '.join(f'{size / _MEGABYTE:.1f}' for size in meter.read_shares())
        print(f'memory {moment}, {name}: {shares} MB', flush=True)


def main() -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--devices', type=int, default=10_000)
    parser.add_argument('--arqs', type=int, default=10_000)
    parser.add_argument('--profiles', type=int, default=1_000)
    parser.add_argument('--repetitions', type=int, default=5)
    parser.add_argument(
        '--database', choices=['mariadb', 'postgresql'], default='mariadb'
    )
    parser.add_argument(
        '--controller',
        action='store_true',
        help='run API and conductor in one process',
    )
    arguments = parser.parse_args()
    daemons = ('controller',) if arguments.controller else ('conductor', 'api')
    plan = Plan(
        devices=arguments.devices,
        arqs=arguments.arqs,
        profiles=arguments.profiles,
        repetitions=arguments.repetitions,
    )
    with tempfile.TemporaryDirectory(prefix='lists-') as directory:
        run(plan, arguments.database, Path(directory), daemons)
    return 0


if __name__ == '__main__':
    sys.exit(main())
