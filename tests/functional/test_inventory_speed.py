# SPDX-License-Identifier: Apache-2.0
"""What a host of 64 devices costs: in statements, requests to Placement, and bytes.

Counts, not times: they are the same on every machine.
"""

import dataclasses
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
from oslo_config import cfg

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.inventory import Inventory
from cyborg_lite.conductor.placement_sync import PlacementSync, PlacementSyncHandler
from cyborg_lite.conductor.pulses import Pulses
from cyborg_lite.db import jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.model.inventory import Deployable, HostReport
from cyborg_lite.model.jobs import Owner
from cyborg_lite.model.services import Vitals
from cyborg_lite.rpc import transport, wire
from cyborg_lite.rpc.conductor import ConductorAPI
from cyborg_lite.rpc.context import of_daemon
from tests.fakes.cards import HOST, numbered
from tests.fakes.databases import database_fixture
from tests.fakes.real_placement import CountedRemote, remote
from tests.fakes.statements import statements, writes

__all__ = ['remote']

database = database_fixture('sqlite', 'mariadb', 'postgresql')

DEVICES: Final = 64
HANDLES: Final = 16


@dataclasses.dataclass
class Cost:
    statements: list[str]
    requests: list[str]

    @property
    def writes(self) -> list[str]:
        return writes(self.statements)


class Fleet:
    """A conductor, and one host that reports to it."""

    def __init__(self, database: Database, remote: CountedRemote) -> None:
        self.hostname = f'compute-{uuid4().hex[:8]}'
        self.database = database
        self.remote = remote
        placement = Placement(remote)
        placement.create_provider(str(uuid4()), self.hostname, None)
        self.pulses = Pulses(database, threading.Event())
        self.inventory = Inventory(database, lambda: None, self.pulses)
        self.handler = PlacementSyncHandler(
            database, PlacementSync(database, placement)
        )

    def report(self) -> HostReport:
        devices = tuple(
            dataclasses.replace(one, root=self._renamed(one.root))
            for one in numbered(DEVICES, HANDLES)
        )
        return HostReport(self.hostname, 'boot', devices)

    def _renamed(self, root: Deployable) -> Deployable:
        name = root.name.replace(HOST, self.hostname)
        return dataclasses.replace(root, name=name)

    @contextmanager
    def cost(self) -> Iterator[Cost]:
        self.remote.sent.clear()
        with statements(self.database) as seen:
            yield Cost(seen, self.remote.sent)

    def settle(self) -> int:
        """Do what jobs there are; how many."""
        taken = self.database.write(jobs.take, Owner('me', 30_000), 10)
        for job in taken:
            self.handler.run(job)
        return len(taken)


@pytest.fixture
def fleet(database: Database, remote: CountedRemote) -> Fleet:
    return Fleet(database, remote)


def test_a_first_report(fleet: Fleet) -> None:
    with fleet.cost() as cost:
        fleet.inventory.report(of_daemon(), fleet.report())

    assert len(cost.statements) <= 12
    assert cost.requests == []
    with fleet.cost() as cost:
        assert fleet.settle() == 1
    assert len(cost.requests) <= 3 * DEVICES + 5
    # Taking the job and ending it, the rows, and the record of traits.
    assert len(cost.statements) <= 8


def test_the_same_report_again(fleet: Fleet) -> None:
    report = fleet.report()
    fleet.inventory.report(of_daemon(), report)
    fleet.settle()
    with fleet.cost() as cost:
        fleet.inventory.report(of_daemon(), report)
    assert len(cost.statements) <= 1
    assert cost.writes == []
    assert fleet.settle() == 0
    assert cost.requests == []


def test_one_changed_device_of_many(fleet: Fleet) -> None:
    report = fleet.report()
    fleet.inventory.report(of_daemon(), report)
    fleet.settle()
    first = report.devices[0]
    fewer = dataclasses.replace(
        first.root, units=first.root.units[:-1], total=HANDLES - 1
    )
    changed = (dataclasses.replace(first, root=fewer), *report.devices[1:])
    with fleet.cost() as cost:
        fleet.inventory.report(
            of_daemon(), dataclasses.replace(report, devices=changed)
        )
    # The digest, the handle that is gone, the deployable, and the job.
    assert len(cost.writes) <= 4
    with fleet.cost() as cost:
        fleet.settle()
    (written,) = [sent for sent in cost.requests if not sent.startswith('GET')]
    assert written.endswith(f'{first_provider(fleet)}/inventories')
    assert len(cost.requests) == 3


def first_provider(fleet: Fleet) -> str:
    return fleet.report().devices[0].root.provider_uuid


def test_a_heartbeat_is_one_statement_at_first_and_then_a_share_of_two(
    fleet: Fleet,
) -> None:
    report = fleet.report()
    fleet.inventory.report(of_daemon(), report)
    for expected in (1, 0, 0):
        with fleet.cost() as cost:
            wanted = fleet.inventory.heartbeat(fleet.hostname, report.digest, '0.1.0')
        assert wanted is False
        # The first gives the version too, which no report tells.
        assert len(cost.statements) == expected
    with fleet.cost() as cost:
        fleet.pulses.write()
    assert len(cost.statements) == 2


def test_what_an_agent_says_again_and_again_is_short(tmp_path: Path) -> None:
    """Ours of it: the bus adds ids of its own to every call."""
    file = tmp_path / 'bus.conf'
    file.write_text(f'[DEFAULT]\ntransport_url = local:///{uuid4()}\n')
    conf = cfg.ConfigOpts()
    conf(['--config-file', str(file)])
    bus = transport.connect(conf)
    heard = Listener()
    server = transport.serve(bus, transport.CONDUCTOR_TOPIC, 'any', [heard])
    server.start()
    try:
        report = HostReport('c' * 40, str(uuid4()), tuple(numbered(DEVICES, HANDLES)))
        context = of_daemon()
        api = ConductorAPI(bus)
        vitals = Vitals(report.boot_id)
        api.heartbeat(context, report.hostname, report.digest, '0.1.0', vitals)
    finally:
        server.stop()
        server.wait()
        bus.cleanup()
    said = json.dumps(heard.said | context.to_wire())
    assert len(said) < 400
    assert len(json.dumps(wire.dump(report))) > 100_000


class Listener:
    """Keeps the arguments of a heartbeat."""

    target = transport.interface('1.0')

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}  # as they came

    # Any: what arrives on the wire is of no known type.
    @transport.endpoint
    def heartbeat(self, context: object, **said: Any) -> bool:
        self.said = said
        return False
