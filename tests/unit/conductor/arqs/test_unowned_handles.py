# SPDX-License-Identifier: Apache-2.0
"""Handles that hosts have prepared, in a database from before their bind."""

from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import select, update

from cyborg_lite.conductor.arqs.unowned_handles import UnownedHandles
from cyborg_lite.db.arqs import attach_handles, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, AttachHandle
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.providers import providers
from cyborg_lite.errors.arqs import NoFreeHandle
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.hosts.events import HostHandle
from cyborg_lite.model.operations import OperationKind
from tests.builders.bound_arqs import bind_arqs
from tests.builders.database_backups import back_up, restore
from tests.builders.rows import (
    HOST,
    OWNER,
    PROJECT,
    add_arqs,
    add_card,
)
from tests.builders.unclean_units import count_clean_jobs
from tests.doubles.consumers import FakeConsumers
from tests.doubles.instances import FakeInstances
from tests.support.sql_statements import statements

_EVERYBODY = Scope(project_id=None)


class Site:
    """A card with two handles, and the witnesses of its use."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.consumers, self.nova = FakeConsumers(), FakeInstances()
        self.woken = 0
        self.card = add_card(database, 2, needs_host=True)
        self.arqs = add_arqs(database, 4)
        self.service = UnownedHandles(database, self.consumers, self.nova, self._wake)

    def _wake(self) -> None:
        self.woken += 1

    def bind(self) -> AllocatedHandle:
        """Bind the next ARQ to a new instance, which has an allocation."""
        arq = self.arqs.pop(0)
        instance = bind_arqs(self.database, [arq], self.card)
        self.consumers.allocate(instance, [self.card], PROJECT)
        self.nova.hosts[instance] = HOST
        (handle,) = self.database.read(attach_handles.list_handles_of_arqs, [arq])
        return handle

    def bind_and_restore(self) -> HostHandle:
        """Bind an ARQ, and put back the database from before the bind.

        The database had fewer claims of the handle than the host knows.
        """
        backup = back_up(self.database)
        handle = replace(HostHandle.describe(self.bind()), generation=7)
        restore(self.database, backup)
        return handle

    def end_instance(self, handle: HostHandle) -> None:
        del self.nova.hosts[handle.instance_uuid]
        self.consumers.forget(handle.instance_uuid)

    def compare(self, *handles: HostHandle) -> tuple[str, ...]:
        return self.service.list_releasable(HOST, handles).abandoned

    def count_reserved(self) -> int:
        (row,) = self.database.read(providers.list_providers_of_host, HOST)
        return row.reserved

    def set_columns(self, **values: object) -> None:
        changed = update(AttachHandle).values(**values)
        self.database.write(lambda session: session.execute(changed))

    def read_column(self, name: str) -> list[object]:
        column = select(getattr(AttachHandle, name)).order_by(AttachHandle.id)
        return self.database.read(lambda session: list(session.scalars(column)))


@pytest.fixture
def site(database: Database) -> Site:
    return Site(database)


@pytest.mark.parametrize('handle_type', ['MDEV', 'PCI', 'NVMF'])
def test_handle_of_living_instance_is_kept_and_reserved(
    site: Site, caplog: pytest.LogCaptureFixture, handle_type: str
) -> None:
    site.set_columns(type=handle_type)
    handle = site.bind_and_restore()
    assert site.count_reserved() == 0
    assert site.compare(handle) == ()
    assert site.count_reserved() == 1
    assert site.woken == 1
    (record,) = caplog.records
    assert record.levelname == 'WARNING'
    for name in (HOST, handle.key, handle.arq_uuid, handle.instance_uuid):
        assert name in record.getMessage()
    # No bind gets it, and the other handle is still offered.
    assert site.bind().uuid != handle.uuid
    with pytest.raises(NoFreeHandle):
        site.bind()
    assert site.compare(handle) == ()
    assert site.woken == 1


@pytest.mark.parametrize(
    'end',
    [
        lambda site, instance: site.consumers.forget(instance),
        lambda site, instance: site.nova.hosts.pop(instance),
    ],
)
def test_use_that_one_witness_knows_keeps_the_handle(
    site: Site, end: Callable[[Site, str], object]
) -> None:
    handle = site.bind_and_restore()
    end(site, handle.instance_uuid)
    assert site.compare(handle) == ()
    assert site.count_reserved() == 1


@pytest.mark.parametrize(
    ('witness', 'trouble'),
    [('nova', 'is_down'), ('nova', 'hidden'), ('consumers', 'is_down')],
)
def test_silent_witness_keeps_the_handle(
    site: Site, witness: str, trouble: str
) -> None:
    handle = site.bind_and_restore()
    site.end_instance(handle)
    setattr(getattr(site, witness), trouble, True)
    assert site.compare(handle) == ()
    assert site.count_reserved() == 1


def test_placement_alone_decides_without_nova(site: Site) -> None:
    handle = site.bind_and_restore()
    site.nova.configured = False
    assert site.compare(handle) == ()
    site.consumers.forget(handle.instance_uuid)
    assert site.compare(handle) == (handle.uuid,)


def test_unknown_instance_is_any_consumer(site: Site) -> None:
    bound = site.bind_and_restore()
    handle = replace(bound, instance_uuid='')
    site.nova.hosts.clear()
    assert site.compare(handle) == ()
    site.consumers.forget(bound.instance_uuid)
    assert site.compare(handle) == (handle.uuid,)


def test_handles_of_arqs_cost_one_select(site: Site, database: Database) -> None:
    handles = [HostHandle.describe(site.bind()), HostHandle.describe(site.bind())]
    site.consumers.is_down = site.nova.is_down = True
    with statements(database) as sql:
        assert site.compare(*handles) == ()
    assert len(sql) == 1
    assert site.count_reserved() == 0


def test_unit_of_another_arq_is_not_released(site: Site) -> None:
    handle = replace(site.bind_and_restore(), uuid=str(uuid4()))
    assert site.bind().key == handle.key
    site.end_instance(handle)
    assert site.compare(handle) == ()
    assert site.count_reserved() == 0


def test_handle_of_unknown_device_is_kept(site: Site) -> None:
    handle = HostHandle(str(uuid4()), 'arq', str(uuid4()), 'host_gone', 'key', 1)
    site.nova.hosts[handle.instance_uuid] = HOST
    assert site.compare(handle) == ()
    site.nova.hosts.clear()
    assert site.compare(handle) == (handle.uuid,)


def test_released_unit_is_cleaned(site: Site, database: Database) -> None:
    site.set_columns(cleaning='after-use')
    handle = site.bind_and_restore()
    site.end_instance(handle)
    assert site.compare(handle) == (handle.uuid,)
    assert count_clean_jobs(database) == 0
    site.compare()
    assert count_clean_jobs(database) == 1
    assert sorted(map(str, site.read_column('clean_state'))) == ['clean', 'dirty']


def test_missing_unit_is_deleted_after_release(site: Site) -> None:
    handle = site.bind_and_restore()
    site.compare(handle)
    site.set_columns(missing=True)
    site.compare()
    assert handle.uuid not in site.read_column('uuid')


def test_deleted_arq_of_old_database_frees_no_handle(site: Site) -> None:
    """The old database has a release job of an earlier use of the handle."""
    former = site.bind()
    backup = back_up(site.database)
    arqs = [former.arq_uuid]
    site.database.write(release.delete_arqs, arqs, _EVERYBODY, True, None)
    (job,) = site.database.write(queue.lease_jobs, OWNER, 1, [OperationKind.RELEASE])
    site.database.write(release.record_release, job, former)
    handle = HostHandle.describe(site.bind())
    assert handle.uuid == former.uuid
    restore(site.database, backup)
    site.database.write(release.delete_arqs, arqs, _EVERYBODY, True, None)
    (job,) = site.database.write(queue.lease_jobs, OWNER, 1, [OperationKind.RELEASE])
    stored = site.database.read(attach_handles.find_unclean_handle, handle.uuid)
    assert stored is not None
    # The agent ignores the release, because the host has a later generation.
    site.database.write(release.record_release, job, stored)
    assert site.compare(handle) == ()
    assert site.count_reserved() == 1


@pytest.mark.parametrize(
    'values',
    [{'uuid': 'u' * 65}, {'key': '\0'}, {'generation': -1}, {'generation': 2**31}],
)
def test_invalid_handle_raises(
    site: Site, database: Database, values: dict[str, object]
) -> None:
    handle = HostHandle('uuid', 'arq', 'instance', 'name', 'key', 1)
    with pytest.raises(InvalidInput), statements(database) as sql:
        site.compare(replace(handle, **values))  # type: ignore[arg-type]  # of tests
    assert sql == []


def test_handle_of_bound_arq_that_host_lacks_is_returned(site: Site) -> None:
    def list_unmentioned(*handles: HostHandle) -> list[str]:
        comparison = site.service.list_releasable(HOST, handles)
        return [item.uuid for item in comparison.unmentioned]

    handle = HostHandle.describe(site.bind())
    assert list_unmentioned() == []  # the host may prepare it now
    long_ago = update(Arq).values(bound_at=1)
    site.database.write(lambda session: session.execute(long_ago))
    assert list_unmentioned(handle) == []
    assert list_unmentioned() == [handle.uuid]
