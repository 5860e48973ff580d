# SPDX-License-Identifier: Apache-2.0
"""Hosts: their list, their maintenance, and their removal with all rows."""

from typing import Any

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import (
    Arq,
    AttachHandle,
    Deployable,
    Device,
    Service,
)
from cyborg_lite.db.hosts import hosts
from cyborg_lite.db.jobs import administration
from cyborg_lite.errors.hosts import HostInUse, HostNotFound, ServiceAlive
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.hosts.services import ServiceState
from cyborg_lite.model.jobs import JobType
from tests.builders.bound_arqs import create_bound_arqs, create_bound_instance
from tests.builders.rows import HOST, add_card, states
from tests.builders.service_rows import mark_down, record_heartbeat

EVERYBODY = Scope(project_id=None, of_instances=True)


def count_rows(database: Database, table: Any) -> int:
    statement = select(func.count()).select_from(table)
    return database.read(lambda session: session.scalar(statement)) or 0


def set_arq_state(database: Database, uuid: str, state: str) -> None:
    def write(session: Session) -> None:
        session.execute(update(Arq).where(Arq.uuid == uuid).values(state=state))

    database.write(write)


def test_list_hosts_counts_devices_and_arqs(database: Database) -> None:
    add_card(database, 2)
    create_bound_arqs(database, 1)
    mark_down(database, HOST)
    record_heartbeat(database, 'other')
    first, second = database.read(hosts.list_hosts)
    assert (first.name, first.agent) == (HOST, ServiceState.DOWN)
    assert (first.devices, first.maintaining, first.arqs) == (2, 0, 1)
    assert (second.name, second.devices) == ('other', 0)


def test_set_status_changes_all_devices_once(database: Database) -> None:
    add_card(database, 1)
    add_card(database, 1)
    status = DeviceStatus.MAINTAINING
    assert database.write(hosts.set_status, HOST, status, 'new fan') == 2
    assert database.write(hosts.set_status, HOST, status, 'new fan') == 0
    (summary,) = database.read(hosts.list_hosts)
    assert summary.maintaining == 2
    (job,) = database.read(administration.list_jobs, [JobType.PLACEMENT_SYNC])
    assert job.key == HOST


def test_unknown_host_is_refused(database: Database) -> None:
    with pytest.raises(HostNotFound, match='nowhere'):
        database.write(hosts.forget_host, 'nowhere')
    with pytest.raises(HostNotFound, match='nowhere'):
        database.write(hosts.set_status, 'nowhere', DeviceStatus.ENABLED)


def test_forget_host_deletes_all_rows(database: Database) -> None:
    add_card(database, 3)
    mark_down(database, HOST)
    removed = database.write(hosts.forget_host, HOST)
    assert (removed.devices, removed.handles) == (1, 3)
    assert len(removed.provider_uuids) == 1
    for table in (Device, Deployable, AttachHandle, Service):
        assert count_rows(database, table) == 0
    # Placement follows with this job.
    (job,) = database.read(administration.list_jobs)
    assert (job.type, job.key) == (JobType.PLACEMENT_SYNC, HOST)


def test_forget_host_keeps_other_hosts(database: Database) -> None:
    add_card(database, 1)
    mark_down(database, 'other')
    assert database.write(hosts.forget_host, 'other').devices == 0
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
    arqs = database.read(hosts.list_arqs, HOST)
    assert [arq.uuid for arq in arqs] == uuids
    assert all(arq.device for arq in arqs)


def test_forget_host_deletes_arqs_that_wait_for_cleaning(database: Database) -> None:
    """The host that would clean the handles is gone."""
    uuids = create_bound_arqs(database, 2)
    database.write(release.delete_arqs, uuids, EVERYBODY, True, None)
    assert states(database, uuids) == ['Deleting'] * 2
    removed = database.write(hosts.forget_host, HOST)
    assert (removed.arqs, removed.jobs) == (2, 2)
    assert count_rows(database, Arq) == 0
    (job,) = database.read(administration.list_jobs)
    assert job.type == JobType.PLACEMENT_SYNC


@pytest.mark.parametrize(
    ('before', 'after'), [('UnbindFailed', 'Unbound'), ('BindFailed', 'BindFailed')]
)
def test_forget_host_keeps_arqs_that_can_be_used_again(
    database: Database, before: str, after: str
) -> None:
    (uuid,) = create_bound_arqs(database, 1)
    if before == 'UnbindFailed':
        database.write(release.unbind_arqs, [uuid], EVERYBODY, None)
    set_arq_state(database, uuid, before)
    database.write(hosts.forget_host, HOST)
    assert states(database, [uuid]) == [after]
    assert count_rows(database, AttachHandle) == 0
