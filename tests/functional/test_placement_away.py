# SPDX-License-Identifier: Apache-2.0
"""A Placement that is away, or answers whatever: right in the end, and in peace."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from cyborg_lite.clients.placement import MICROVERSION, Placement
from cyborg_lite.clients.session import NO_CREDENTIALS, Remote
from cyborg_lite.conductor.placement_sync import (
    PlacementSync,
    PlacementSyncHandler,
    SyncResult,
)
from cyborg_lite.db import jobs
from cyborg_lite.db.engine import Database
from cyborg_lite.db.providers import sync_job
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.jobs import Job, Owner
from tests.fakes.databases import database_fixture
from tests.fakes.placed_host import FULL, Host, add_foreign, host
from tests.fakes.placement_front import FATES, PlacementFront
from tests.fakes.provider_rows import add_device, change_deployable, remove_devices
from tests.fakes.real_placement import endpoint, remote

__all__ = ['host', 'remote']

database = database_fixture('sqlite')

_TRIES = 5  # of one sync, where others change what it reads


@contextmanager
def front(
    config: pytest.Config, fate: Callable[[str], str]
) -> Iterator[tuple[PlacementFront, Placement]]:
    with PlacementFront(endpoint(config), fate) as before:
        session = Session(auth=Token(before.url, NO_CREDENTIALS))
        adapter = Adapter(
            session, service_type='placement', default_microversion=MICROVERSION
        )
        yield before, Placement(Remote('Placement', adapter))


def take(database: Database, host: Host) -> Job:
    database.write(jobs.add, sync_job(host.name))
    (job,) = database.write(jobs.take, Owner('me', 30_000), 1)
    return job


def change_much(host: Host, database: Database) -> list[str]:
    """Something of each kind is to be done; the providers that are to be there."""
    other = [
        add_device(database, host.name, f'gpu{number}', num_accelerators=4)
        for number in range(4)
    ]
    host.sync()
    remove_devices(database, other[:2])
    change_deployable(database, other[2], traits=['CUSTOM_A'], num_accelerators=2)
    new = add_device(database, host.name, 'new', traits=['CUSTOM_B'])
    return [host.gpu, other[2], other[3], new]


@pytest.mark.parametrize('seed', range(4))
def test_answers_at_random_end_in_what_is_wanted(
    host: Host, database: Database, pytestconfig: pytest.Config, seed: int
) -> None:
    wanted = change_much(host, database)
    foreign = add_foreign(host, f'{host.name}_numa0', host.root.uuid, 'CUSTOM_RACK_7')
    before = host.read(foreign)
    chance = random.Random(seed)
    fates = ['passed'] * 2 * len(FATES) + list(FATES)
    job = take(database, host)
    attempts = 0
    with front(pytestconfig, lambda _: chance.choice(fates)) as (seen, placement):
        handler = PlacementSyncHandler(database, PlacementSync(database, placement))
        while database.read(jobs.count):
            attempts += 1
            assert attempts < 200
            asked = len(seen.asked)
            try:
                handler.run(job)
            except CyborgError:
                # What an attempt may ask is bounded; the next one waits its time.
                assert len(seen.asked) - asked <= _TRIES * (2 + 5 * len(wanted))
    assert attempts > 1
    tree = {node.uuid for node in host.placement.tree(host.root.uuid)}
    assert tree == {host.root.uuid, foreign, *wanted}
    assert host.read(foreign) == before
    assert host.read(host.gpu).inventories == {'PGPU': FULL}
    assert host.sync() == SyncResult()


@pytest.mark.parametrize('fate', ['lost', '500', '503', '409 of a proxy'])
def test_one_that_is_away_is_asked_once_an_attempt(
    host: Host, database: Database, pytestconfig: pytest.Config, fate: str
) -> None:
    job = take(database, host)
    with front(pytestconfig, lambda _: fate) as (seen, placement):
        handler = PlacementSyncHandler(database, PlacementSync(database, placement))
        for attempt in range(1, 4):
            with pytest.raises(CyborgError):
                handler.run(job)
            assert len(seen.asked) == attempt
        # Nothing is lost meanwhile: the job is there, and does it all later.
        uuid = add_device(database, host.name, 'late')
        seen.fate = lambda _: 'passed'
        handler.run(job)
    assert database.read(jobs.count) == ()
    assert host.read(uuid).traits >= {'OWNER_CYBORG'}


def test_conflicts_without_end_are_given_back_after_a_few(
    host: Host, database: Database, pytestconfig: pytest.Config
) -> None:
    change_deployable(database, host.gpu, num_accelerators=2)

    def fate(asked: str) -> str:
        return '409' if asked.startswith('PUT') else 'passed'

    with front(pytestconfig, fate) as (seen, placement):
        with pytest.raises(CyborgError):
            PlacementSync(database, placement).sync(host.name)
        # Each time the root, the tree and the change; once the parts of the provider.
        assert len(seen.asked) == 3 * _TRIES + 2
        seen.fate = lambda _: 'passed'
        assert PlacementSync(database, placement).sync(host.name).changes
