# SPDX-License-Identifier: Apache-2.0
"""A restored database behind the API: nothing in use is handed out or released."""

import logging
from dataclasses import replace
from typing import Any, Final

import pytest
from sqlalchemy import update

from cyborg_lite.clients.placement import Consumer
from cyborg_lite.conductor.hosts.database_watch import DatabaseWatch
from cyborg_lite.db.arqs.attach_handles import list_handles_of_arqs
from cyborg_lite.db.core import incarnations
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Service
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.hosts.events import HostHandle
from cyborg_lite.model.hosts.incarnations import NO_MARK, DatabaseMark
from cyborg_lite.model.hosts.services import Heartbeat, HeartbeatDetails
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.traits import OWNER_CYBORG
from cyborg_lite.rpc.context import bare_context, daemon_context
from tests.builders.bound_arqs import bind_arqs
from tests.builders.database_backups import back_up, restore
from tests.builders.rows import HOST, OWNER, PROJECT, add_arqs, add_card
from tests.doubles.agents import FakeAgents
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import ADMIN, NOVA, Client
from tests.support.api.patches import UNKNOWN, build_bind

VERSIONS: Final = ('2.0', '2.4', '2.7')
DETAILS: Final = HeartbeatDetails('boot')
TOKEN: Final = Heartbeat(HOST, '1.0', 'digest', 'boot').token


class Site:
    """A card with two functions; one server is older than the backup."""

    def __init__(self, database: Database, *, needs_host: bool = False) -> None:
        self.database = database
        self.conductor = LocalConductor(database)
        self.nova = Client(self.conductor, headers=NOVA)
        self.card = add_card(database, 2, needs_host=needs_host)
        placement = self.conductor.placement
        generation = placement.create_provider(self.card, 'card', None).generation
        placement.set_traits(self.card, generation, [OWNER_CYBORG])
        self.arqs = add_arqs(database, 4)
        self.old = self.boot()
        self.backup = back_up(database)
        self.remembered = NO_MARK

    def boot(self) -> str:
        """Bind the next ARQ to a new server, which has an allocation."""
        self.arq = self.arqs.pop(0)
        instance = bind_arqs(self.database, [self.arq], self.card)
        allocations = {self.card: {'PGPU': 1}}
        consumer = Consumer(instance, PROJECT, 'user', 1, allocations)
        self.conductor.placement.consumers[instance] = consumer
        return instance

    def delete_server(self, instance: str) -> int:
        """Delete the ARQs and then the allocation, as Nova does."""
        status = self.nova.delete(f'/accelerator_requests?instance={instance}').status
        del self.conductor.placement.consumers[instance]
        return status

    def restore(self) -> None:
        """Put the backup back; the agent of the host remembers a later commit."""
        self.remembered = self.remembered.merge(self.read_mark())
        restore(self.database, self.backup)
        self.send_heartbeat(replace(DETAILS, mark=self.remembered))

    def read_mark(self) -> DatabaseMark:
        return self.database.read(incarnations.read_state).mark

    def send_heartbeat(self, details: HeartbeatDetails) -> None:
        heartbeat = HOST, 'digest', '1.0', details
        self.conductor.client.heartbeat(daemon_context(), *heartbeat)

    def find_handle(self) -> AllocatedHandle:
        """Return the handle of the ARQ that was bound last."""
        (handle,) = self.database.read(list_handles_of_arqs, [self.arq])
        return handle

    def compare(self, handle: AllocatedHandle) -> tuple[str, ...]:
        """Compare a prepared handle of the host; return what it must release."""
        unit = handle.deployable_name, handle.key, handle.generation
        prepared = HostHandle(handle.uuid, handle.arq_uuid, handle.instance_uuid, *unit)
        reconcile = self.conductor.client.reconcile_handles
        return reconcile(daemon_context(), HOST, [prepared]).abandoned

    def lease_kinds(self) -> set[str]:
        return {job.type for job in self.database.write(queue.lease_jobs, OWNER, 100)}

    def list_arqs(self, instance: str, version: str) -> Any:
        path = f'/accelerator_requests?instance={instance}'
        return self.nova.at(version).get(path)


@pytest.fixture
def site(database: Database) -> Site:
    return Site(database)


def test_quarantine_is_shown_until_its_end(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.boot()
    site.restore()
    site.restore()
    admin = site.nova.as_(ADMIN, '2.7')
    (item,) = (
        item
        for item in admin.get('/attention').json['attention']
        if item['kind'] == 'quarantine'
    )
    assert item['severity'] == 'critical'
    assert item['reason'].startswith(f'The agent of host {HOST} remembers step')
    assert item['command'].startswith('cyborg-lite-manage recover')
    (line,) = (line for line in caplog.records if line.levelno == logging.ERROR)
    assert item['reason'] in line.getMessage()
    assert site.database.write(incarnations.end_quarantine) == 1
    site.send_heartbeat(replace(DETAILS, mark=site.remembered))
    kinds = {item['kind'] for item in admin.get('/attention').json['attention']}
    assert 'quarantine' not in kinds
    site.restore()  # the copy is put back again
    assert site.database.write(incarnations.end_quarantine) == 2


def test_agents_learn_marks_until_quarantine(site: Site) -> None:
    client = site.conductor.client
    site.boot()
    site.conductor.watch.compare(NO_MARK, 'a conductor')
    site.send_heartbeat(DETAILS)
    stored = update(Service).values(digest='digest', boot_id='boot')
    site.database.write(lambda session: session.execute(stored))
    site.send_heartbeat(DETAILS)  # a short one may follow
    assert client.repeat(bare_context(), HOST, TOKEN) == site.read_mark()
    site.restore()
    assert client.repeat(bare_context(), HOST, TOKEN) == NO_MARK


def test_conductor_notices_failover_to_lagging_replica(site: Site) -> None:
    site.conductor.watch.compare(NO_MARK, 'a conductor')
    site.boot()
    site.conductor.watch.compare(site.conductor.watch.mark, 'a conductor')
    restore(site.database, site.backup)
    site.conductor.watch.compare(site.conductor.watch.mark, 'a conductor')
    quarantine = site.database.read(incarnations.find_quarantine)
    assert quarantine is not None
    assert quarantine.reason.startswith('a conductor remembers')


def test_new_conductor_asks_agents_before_first_job(site: Site) -> None:
    """The conductor starts after a restore, before the first heartbeat."""
    site.send_heartbeat(DETAILS)
    site.backup = back_up(site.database)
    site.boot()
    agents = FakeAgents()
    agents.mark = site.read_mark()
    agents.down_hosts = {HOST}
    restore(site.database, site.backup)
    watch = DatabaseWatch(site.database, site.conductor.placement, patience=3600)
    assert not watch.check(agents)
    agents.down_hosts.clear()
    assert watch.check(agents)
    assert site.database.read(incarnations.find_quarantine) is not None
    watch = DatabaseWatch(site.database, site.conductor.placement, patience=0)
    agents.down_hosts = {HOST}
    assert watch.check(agents)


def test_function_of_running_server_is_not_bound(site: Site) -> None:
    site.boot()
    site.restore()
    arq = site.arqs[0]
    patch = {arq: build_bind(device_rp_uuid=site.card)}
    answer = site.nova.patch('/accelerator_requests', patch)
    assert answer.status == 503
    assert 'lost changes' in answer.fault
    assert site.conductor.arqs[arq].state is State.INITIAL
    site.database.write(incarnations.end_quarantine)
    assert site.nova.patch('/accelerator_requests', patch).status == 202


@pytest.mark.parametrize('version', VERSIONS)
def test_list_lacks_no_arq_of_running_server(site: Site, version: str) -> None:
    running = site.boot()
    site.restore()
    assert site.list_arqs(running, version).status == 503
    assert site.list_arqs(UNKNOWN, version).json['arqs'] == []
    assert len(site.list_arqs(site.old, version).json['arqs']) == 1
    site.database.write(incarnations.end_quarantine)
    assert site.list_arqs(running, version).json['arqs'] == []


def test_arq_of_deleted_server_is_not_attached(site: Site) -> None:
    site.delete_server(site.old)
    site.restore()
    assert site.list_arqs(site.old, '2.0').status == 503
    assert site.nova.delete(f'/accelerator_requests?instance={site.old}').status == 204
    assert site.list_arqs(site.old, '2.0').json['arqs'] == []


def test_delete_of_unknown_server_releases_nothing(database: Database) -> None:
    site = Site(database, needs_host=True)
    running = site.boot()
    handle = site.find_handle()
    site.restore()
    assert site.delete_server(running) == 204
    assert site.delete_server(site.old) == 204
    assert site.compare(handle) == ()
    assert OperationKind.RELEASE not in site.lease_kinds()
    database.write(incarnations.end_quarantine)
    assert site.compare(handle) == (handle.uuid,)
    assert OperationKind.RELEASE in site.lease_kinds()


def test_forged_incarnation_begins_no_quarantine(site: Site) -> None:
    with pytest.raises(InvalidInput):
        site.send_heartbeat(replace(DETAILS, mark=DatabaseMark(2_000)))
    assert site.database.read(incarnations.find_quarantine) is None
