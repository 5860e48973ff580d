# SPDX-License-Identifier: Apache-2.0
"""Placement is unreachable or fails: the result is correct and requests are few."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from cyborg_lite.clients.placement import MICROVERSION, Placement
from cyborg_lite.clients.session import NO_CREDENTIALS, Remote
from cyborg_lite.conductor.providers.sync import (
    PlacementSync,
    PlacementSyncHandler,
    SyncResult,
)
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.jobs import Job, Owner
from tests.builders.provider_rows import add_device, change_deployable, remove_devices
from tests.servers.databases import database_fixture
from tests.servers.http_proxy import FATES, HttpProxy
from tests.servers.placed_host import FULL, Host, add_foreign, host
from tests.servers.placement import endpoint, remote

__all__ = ['host', 'remote']

database = database_fixture('sqlite')

_TRIES = 5  # attempts of one sync when another client changes the provider


@contextmanager
def run_proxy(
    config: pytest.Config, fate: Callable[[str], str]
) -> Iterator[tuple[HttpProxy, Placement]]:
    with HttpProxy(endpoint(config), fate) as before:
        session = Session(auth=Token(before.url, NO_CREDENTIALS))
        adapter = Adapter(
            session, service_type='placement', default_microversion=MICROVERSION
        )
        yield before, Placement(Remote('Placement', adapter))


def lease_sync_job(database: Database, host: Host) -> Job:
    database.write(queue.add_job, queue.placement_sync_job(host.name))
    (job,) = database.write(queue.lease_jobs, Owner('me', 30_000), 1)
    return job


def change_much(host: Host, database: Database) -> list[str]:
    """Cause one change of each kind; return the uuids of the expected providers."""
    new_devices = [
        add_device(database, host.name, f'gpu{number}', num_accelerators=4)
        for number in range(4)
    ]
    host.sync()
    remove_devices(database, new_devices[:2])
    change_deployable(database, new_devices[2], traits=['CUSTOM_A'], num_accelerators=2)
    new = add_device(database, host.name, 'new', traits=['CUSTOM_B'])
    return [host.gpu, new_devices[2], new_devices[3], new]


@pytest.mark.parametrize('seed', range(2))
def test_sync_with_random_faults_reaches_desired_state(
    host: Host, database: Database, pytestconfig: pytest.Config, seed: int
) -> None:
    expected_uuids = change_much(host, database)
    foreign = add_foreign(host, f'{host.name}_numa0', host.root.uuid, 'CUSTOM_RACK_7')
    before = host.read(foreign)
    chance = random.Random(seed)
    fates = ['passed'] * 2 * len(FATES) + list(FATES)
    job = lease_sync_job(database, host)
    attempts = 0
    with run_proxy(pytestconfig, lambda _: chance.choice(fates)) as (proxy, placement):
        handler = PlacementSyncHandler(database, PlacementSync(database, placement))
        while database.read(queue.count_jobs):
            attempts += 1
            assert attempts < 200
            request_line = len(proxy.requests)
            try:
                handler.run(job)
            except CyborgError:
                # The requests of an attempt are bounded; the next attempt waits.
                assert len(proxy.requests) - request_line <= _TRIES * (
                    2 + 5 * len(expected_uuids)
                )
    assert attempts > 1
    emptied = host.list_emptied()
    assert len(emptied) == 2
    tree = {node.uuid for node in host.placement.list_tree(host.root.uuid)} - emptied
    assert tree == {host.root.uuid, foreign, *expected_uuids}
    assert host.read(foreign) == before
    assert host.read(host.gpu).inventories == {'PGPU': FULL}
    assert host.sync() == SyncResult()


@pytest.mark.parametrize('fate', ['lost', '500', '503', '409 of a proxy'])
def test_sync_unreachable_sends_one_request_per_attempt(
    host: Host, database: Database, pytestconfig: pytest.Config, fate: str
) -> None:
    job = lease_sync_job(database, host)
    with run_proxy(pytestconfig, lambda _: fate) as (proxy, placement):
        handler = PlacementSyncHandler(database, PlacementSync(database, placement))
        for attempt in range(1, 4):
            with pytest.raises(CyborgError):
                handler.run(job)
            assert len(proxy.requests) == attempt
        # The job remains and is completed later.
        uuid = add_device(database, host.name, 'late')
        proxy.fate = lambda _: 'passed'
        handler.run(job)
    assert database.read(queue.count_jobs) == ()
    assert host.read(uuid).traits >= {'OWNER_CYBORG'}


def test_sync_endless_conflicts_stops_after_few_attempts(
    host: Host, database: Database, pytestconfig: pytest.Config
) -> None:
    change_deployable(database, host.gpu, num_accelerators=2)

    def fate(request_line: str) -> str:
        return '409' if request_line.startswith('PUT') else 'passed'

    with run_proxy(pytestconfig, fate) as (proxy, placement):
        with pytest.raises(CyborgError):
            PlacementSync(database, placement).sync(host.name)
        # Each attempt reads root and tree and sends the change; children are read once.
        assert len(proxy.requests) == 3 * _TRIES + 2
        proxy.fate = lambda _: 'passed'
        assert PlacementSync(database, placement).sync(host.name).changes
