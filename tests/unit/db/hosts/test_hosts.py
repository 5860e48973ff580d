# SPDX-License-Identifier: Apache-2.0
"""Hosts: their list, their maintenance, and their removal with all rows."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import select

from cyborg_lite.db.arqs import release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import (
    Arq,
    ArqEvent,
    AttachHandle,
    Deployable,
    Device,
    Service,
)
from cyborg_lite.db.hosts import hosts
from cyborg_lite.db.inventory import agents
from cyborg_lite.db.jobs import administration
from cyborg_lite.errors.hosts import HostInUse, HostNotFound, ServiceAlive
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.hosts.events import HostEvent, HostEventKind
from cyborg_lite.model.operations import OperationKind
from tests.builders.bind_jobs import ANY_PROJECT
from tests.builders.bound_arqs import (
    create_bound_arqs,
    create_bound_instance,
    read_history,
)
from tests.builders.rows import HOST, add_card, states
from tests.builders.service_rows import mark_down, record_heartbeat
from tests.builders.table_rows import change_rows, count_rows, read_column


def test_set_status_changes_all_devices_once(database: Database) -> None:
    add_card(database, 1)
    add_card(database, 1)
    status = DeviceStatus.MAINTAINING
    assert database.write(hosts.set_status, HOST, status, 'new fan') == 2
    assert database.write(hosts.set_status, HOST, status, 'new fan') == 0
    (summary,) = database.read(hosts.list_hosts)
    assert summary.maintaining == 2
    (job,) = database.read(administration.list_jobs, [OperationKind.RECONCILE])
    assert job.key == HOST


def test_unknown_host_is_refused(database: Database) -> None:
    with pytest.raises(HostNotFound, match='nowhere'):
        database.write(hosts.forget_host, 'nowhere')
    with pytest.raises(HostNotFound, match='nowhere'):
        database.write(hosts.set_status, 'nowhere', DeviceStatus.ENABLED)


def test_forget_host_deletes_all_rows(database: Database) -> None:
    add_card(database, 3)
    mark_down(database, HOST)
    assert len(database.write(hosts.forget_host, HOST)) == 1
    for table in (Device, Deployable, AttachHandle, Service):
        assert count_rows(database, table) == 0
    # Placement follows with these jobs.
    jobs = database.read(administration.list_jobs)
    kinds = OperationKind.RECONCILE, OperationKind.PROVIDER_REMOVAL
    assert [(job.type, job.key) for job in jobs] == [(kind, HOST) for kind in kinds]


def test_forget_host_keeps_other_hosts(database: Database) -> None:
    add_card(database, 1)
    mark_down(database, 'other')
    assert database.write(hosts.forget_host, 'other') == ()
    assert count_rows(database, Device) == 1


def test_forget_host_alive_is_refused(database: Database) -> None:
    add_card(database, 1)
    record_heartbeat(database, HOST)
    with pytest.raises(ServiceAlive, match=HOST):
        database.write(hosts.forget_host, HOST)
    assert count_rows(database, Device) == 1


def test_forget_host_in_use_names_arqs(database: Database) -> None:
    uuids, instance = create_bound_instance(database, 2)
    with pytest.raises(HostInUse) as caught:
        database.write(hosts.forget_host, HOST)
    for uuid in uuids:
        assert uuid in caught.value.text
    assert instance in caught.value.text


def test_forget_host_deletes_arqs_that_wait_for_cleaning(database: Database) -> None:
    """The host that would clean the handles is gone."""
    uuids = create_bound_arqs(database, 2)
    database.write(release.delete_arqs, uuids, ANY_PROJECT, True, None)
    assert states(database, uuids) == ['Deleting'] * 2
    database.write(hosts.forget_host, HOST)
    assert count_rows(database, Arq) == 0
    jobs = {job.type for job in database.read(administration.list_jobs)}
    assert jobs == {OperationKind.RECONCILE, OperationKind.PROVIDER_REMOVAL}


@pytest.mark.parametrize(
    ('before', 'after'), [('UnbindFailed', 'Unbound'), ('BindFailed', 'BindFailed')]
)
def test_forget_host_keeps_arqs_that_can_be_used_again(
    database: Database, before: str, after: str
) -> None:
    (uuid,) = create_bound_arqs(database, 1)
    if before == 'UnbindFailed':
        database.write(release.unbind_arqs, [uuid], ANY_PROJECT, None)
    change_rows(database, Arq, state=before)
    database.write(hosts.forget_host, HOST)
    assert states(database, [uuid]) == [after]
    assert count_rows(database, AttachHandle) == 0


# --- host events in the history of ARQs. each event is recorded once ----------------


_MOMENT = datetime(2026, 2, 3, tzinfo=UTC)


@pytest.fixture
def arqs(database: Database) -> list[str]:
    """Return two bound ARQs of a host that has a service row."""
    database.write(agents.store_digest, HOST, 'digest', 'boot-1')
    return create_bound_arqs(database, 2)


def read_address(database: Database) -> str:
    """Return the control address of the only device."""
    return read_column(database, select(Device.control_address))[0]


def record_events(database: Database, *events: HostEvent) -> int:
    return database.write(hosts.record_host_events, HOST, events)[0]


def list_steps(database: Database, uuid: str) -> list[tuple[str, str | None]]:
    return [(step.step, step.reason) for step in read_history(database, uuid)]


def test_record_event_with_arq_belongs_to_this_arq(
    database: Database, arqs: list[str]
) -> None:
    first, second = arqs
    before, address = list_steps(database, second), read_address(database)
    event = HostEvent(1, HostEventKind.PREPARED, address, _MOMENT, first)
    record_events(database, event)
    assert list_steps(database, first)[-1] == ('Prepared', None)
    assert list_steps(database, second) == before


def test_record_device_event_belongs_to_all_its_arqs(
    database: Database, arqs: list[str]
) -> None:
    kind, address = HostEventKind.HEALTH, read_address(database)
    failure = HostEvent(1, kind, address, _MOMENT, None, 'failed: lost')
    elsewhere = HostEvent(2, HostEventKind.LOSS, 'ffff:ff:1f.7', _MOMENT)
    assert record_events(database, failure, elsewhere) == 2
    for uuid in arqs:
        assert list_steps(database, uuid)[-1] == ('HealthChanged', 'failed: lost')


def test_record_event_of_unknown_arq_is_dropped(
    database: Database, arqs: list[str]
) -> None:
    count = count_rows(database, ArqEvent)
    event = HostEvent(7, HostEventKind.RELEASED, 'x', _MOMENT, 'unknown')
    assert record_events(database, event) == 7
    assert count_rows(database, ArqEvent) == count


def test_record_event_of_arq_on_other_host_is_dropped(
    database: Database, arqs: list[str]
) -> None:
    """The agent of one host must not write to the history of any ARQ."""
    before = list_steps(database, arqs[0])
    database.write(agents.store_digest, 'compute-2', 'digest', 'boot-1')
    kind, address = HostEventKind.NOT_REBUILT, '0000:01:00.0'
    event = HostEvent(1, kind, address, _MOMENT, arqs[0], 'forged')
    assert database.write(hosts.record_host_events, 'compute-2', [event])
    assert list_steps(database, arqs[0]) == before
