# SPDX-License-Identifier: Apache-2.0
"""Costs of a host with 64 devices: SQL statements, Placement requests and bytes.

Counts are used because they are equal on every machine.
"""

import dataclasses
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

import pytest

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.hosts.heartbeat_batch import HeartbeatBatch
from cyborg_lite.conductor.inventory.inventory import InventoryService
from cyborg_lite.conductor.providers.sync import PlacementSync, PlacementSyncHandler
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.inventory.host_report import Deployable, HostReport
from cyborg_lite.model.jobs import Owner
from cyborg_lite.rpc.context import daemon_context
from tests.builders.reports import HOST, list_cards
from tests.servers.databases import database_fixture
from tests.servers.placement import CountedRemote, remote
from tests.support.sql_statements import statements, transactions, writes

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
    """Conductor, and one host that sends reports."""

    def __init__(self, database: Database, remote: CountedRemote) -> None:
        self.hostname = f'compute-{uuid4().hex[:8]}'
        self.database = database
        self.remote = remote
        placement = Placement(remote)
        placement.create_provider(str(uuid4()), self.hostname, None)
        self.pulses = HeartbeatBatch(database, threading.Event())
        self.inventory = InventoryService(database, lambda: None, self.pulses)
        self.handler = PlacementSyncHandler(
            database, PlacementSync(database, placement)
        )

    def report(self) -> HostReport:
        devices = tuple(
            dataclasses.replace(device, root=self._rename_root(device.root))
            for device in list_cards(DEVICES, HANDLES)
        )
        return HostReport(self.hostname, 'boot', devices)

    def _rename_root(self, root: Deployable) -> Deployable:
        name = root.name.replace(HOST, self.hostname)
        return dataclasses.replace(root, name=name)

    @contextmanager
    def cost(self) -> Iterator[Cost]:
        self.remote.calls.clear()
        with statements(self.database) as sql:
            yield Cost(sql, self.remote.calls)

    def settle(self) -> int:
        """Run the queued jobs and return their number."""
        leased = self.database.write(queue.lease_jobs, Owner('me', 30_000), 10)
        for job in leased:
            self.handler.run(job)
        return len(leased)


@pytest.fixture
def fleet(database: Database, remote: CountedRemote) -> Fleet:
    return Fleet(database, remote)


def test_first_report_costs(fleet: Fleet) -> None:
    with fleet.cost() as cost, transactions(fleet.database) as ends:
        fleet.inventory.store_report(daemon_context(), fleet.report())

    assert len(cost.statements) <= 11
    assert len(ends) <= 2
    assert cost.requests == []
    with fleet.cost() as cost, transactions(fleet.database) as ends:
        assert fleet.settle() == 1
    # Host and tree, the names of two traits, and the inventories of 50 devices at most.
    assert len(cost.requests) <= 2 * DEVICES + 2 + 2 + 2
    # Lease and end of the job, the rows, and the record of traits.
    assert len(cost.statements) <= 8
    assert len(ends) <= 5


def test_repeated_report_costs(fleet: Fleet) -> None:
    report = fleet.report()
    fleet.inventory.store_report(daemon_context(), report)
    fleet.settle()
    with fleet.cost() as cost:
        fleet.inventory.store_report(daemon_context(), report)
    assert len(cost.statements) <= 1
    assert cost.writes == []
    assert fleet.settle() == 0
    assert cost.requests == []


def test_changed_device_costs(fleet: Fleet) -> None:
    report = fleet.report()
    fleet.inventory.store_report(daemon_context(), report)
    fleet.settle()
    first = report.devices[0]
    smaller_report = dataclasses.replace(
        first.root, handles=first.root.handles[:-1], total=HANDLES - 1
    )
    changed = (dataclasses.replace(first, root=smaller_report), *report.devices[1:])
    with fleet.cost() as cost:
        fleet.inventory.store_report(
            daemon_context(), dataclasses.replace(report, devices=changed)
        )
    # The digest, the deleted handle, the deployable, and the job.
    assert len(cost.writes) <= 4
    with fleet.cost() as cost:
        fleet.settle()
    (written,) = [request for request in cost.requests if not request.startswith('GET')]
    assert written.endswith(f'{first_provider(fleet)}/inventories')
    assert len(cost.requests) == 3


def first_provider(fleet: Fleet) -> str:
    return fleet.report().devices[0].root.provider_uuid


def test_heartbeat_repeated_is_batched(fleet: Fleet) -> None:
    report = fleet.report()
    fleet.inventory.store_report(daemon_context(), report)
    for expected in (1, 0, 0):
        with fleet.cost() as cost:
            needs_report = fleet.inventory.record_heartbeat(
                fleet.hostname, report.digest, '0.1.0'
            )
        assert needs_report is False
        # The first heartbeat stores the version, which reports do not have.
        assert len(cost.statements) == expected
    with fleet.cost() as cost:
        fleet.pulses.write()
    assert len(cost.statements) == 2
