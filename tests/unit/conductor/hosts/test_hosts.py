# SPDX-License-Identifier: Apache-2.0
"""Removal of daemons and hosts, with a fake Placement."""

import logging
from uuid import uuid4

import pytest

from cyborg_lite.conductor.hosts.hosts import HostService
from cyborg_lite.conductor.jobs.runner import create_owner
from cyborg_lite.conductor.providers.host_jobs import HostSyncJobs
from cyborg_lite.conductor.providers.sync import PlacementSync
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import devices, modes
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.jobs import administration, operations, queue
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.hosts import ServiceAlive
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.jobs import ModePayload
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from tests.builders.reports import card
from tests.builders.rows import HOST, OWNER, add_card
from tests.builders.service_rows import record_heartbeat
from tests.doubles.placement import FakePlacement

CONTEXT = RequestContext(user_id='a', request_id='req-1', is_admin=True)


@pytest.fixture
def placement() -> FakePlacement:
    placement = FakePlacement()
    placement.create_provider(str(uuid4()), HOST, None)
    return placement


@pytest.fixture
def hosts(database: Database, placement: FakePlacement) -> HostService:
    sync = PlacementSync(database, placement)
    return HostService(database, HostSyncJobs(database, sync, create_owner(10)))


def test_drained_host_offers_nothing_before_it_is_forgotten(
    hosts: HostService, database: Database, placement: FakePlacement
) -> None:
    rp_uuid = add_card(database, 2)
    record_heartbeat(database, HOST)
    with pytest.raises(ServiceAlive):
        hosts.drain_and_forget(CONTEXT, HOST, drain=True)
    assert placement.get_inventories(rp_uuid).inventories['PGPU'].reserved == 2


def test_set_status_repeated_returns_when_placement_has_it(
    hosts: HostService,
    database: Database,
    placement: FakePlacement,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rp_uuid = add_card(database, 2)
    with monkeypatch.context() as outage:
        outage.setattr(placement, 'find_provider_by_name', refuse)
        for _ in range(2):
            with pytest.raises(ServiceUnavailable):
                hosts.set_status(HOST, DeviceStatus.MAINTAINING, 'fan')
    assert hosts.set_status(HOST, DeviceStatus.MAINTAINING, 'fan') == 0
    assert placement.get_inventories(rp_uuid).inventories['PGPU'].reserved == 2


def test_enable_names_devices_that_jobs_change(
    hosts: HostService, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    database.write(reports.store_report, HostReport(HOST, 'boot', (card(0x3B),)))
    (device,) = database.read(devices.list_devices, Query())
    hosts.set_status(HOST, DeviceStatus.MAINTAINING, 'fan')
    payload = ModePayload(device.uuid, 'fast')
    database.write(modes.add_change, payload, None)
    (job,) = database.write(queue.lease_jobs, OWNER, 10, (OperationKind.MODE,))
    database.write(modes.hold_device, job, payload)
    with caplog.at_level(logging.INFO):
        assert hosts.set_status(HOST, DeviceStatus.ENABLED, '') == 0
    assert f'Jobs change devices of host {HOST}: {device.uuid}' in caplog.text


def refuse(_name: str) -> None:
    raise ServiceUnavailable(what='Placement')


def test_forget_placement_down_leaves_job(
    hosts: HostService,
    database: Database,
    placement: FakePlacement,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A conductor removes the providers when Placement answers again."""
    add_card(database, 1)
    monkeypatch.setattr(placement, 'find_provider_by_name', refuse)
    uuid = hosts.drain_and_forget(CONTEXT, HOST, drain=False)
    job, _removal = database.read(administration.list_jobs)
    operation = database.read(operations.read_operation, uuid)
    assert (job.key, operation.kind, operation.state) == (HOST, 'forget', 'waiting')
