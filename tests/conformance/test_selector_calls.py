# SPDX-License-Identifier: Apache-2.0
"""Calls to Placement after a change of a selector, with 10,000 deployables."""

from typing import Final
from uuid import NAMESPACE_DNS, uuid3, uuid4

import pytest
from sqlalchemy import insert
from sqlalchemy.orm import Session

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Deployable, Device, Service
from cyborg_lite.model.hosts.services import AGENT
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.jobs import JobType
from tests.builders.selector_fleets import (
    SyncRunner,
    add_compute_nodes,
    compile_keys,
    create_profile,
    find_trait,
    store_attributes,
)
from tests.builders.service_rows import record_heartbeat
from tests.doubles.placement import FakePlacement
from tests.servers.databases import database_fixture
from tests.support.sql_statements import statements

HOSTS: Final = 1250
CARDS: Final = 8  # of each host
LARGE_HOSTS: Final = 100  # with some cards that match
LARGE_CARDS: Final = 3  # of each of these hosts

LARGE = typed_attributes.MEMORY.of(81920)
SMALL = typed_attributes.MEMORY.of(16384)
SELECTOR = compile_keys(selector='device.memory_mib >= 40GiB')

database = database_fixture('sqlite')


def name_host(number: int) -> str:
    return f'node-{number:04}'


def add_fleet(session: Session) -> None:
    """Add the agents, devices and deployables, in few statements."""
    service = session.query(Service).filter_by(host=name_host(0)).one()
    columns = [column.key for column in Service.__table__.columns if column.key != 'id']
    usual = {key: getattr(service, key) for key in columns}
    session.execute(
        insert(Service),
        [
            {**usual, 'uuid': str(uuid4()), 'host': name_host(number), 'binary': AGENT}
            for number in range(1, HOSTS)
        ],
    )
    places = [(host, card) for host in range(HOSTS) for card in range(CARDS)]
    session.execute(
        insert(Device),
        [
            {
                'id': number,
                'uuid': str(uuid4()),
                'hostname': name_host(host),
                'type': 'GPU',
                'vendor': '10de',
                'model': 'T4',
                'driver': 'NVIDIA',
                'control_address': f'0000:{card:02x}:00.0',
                'hardware_id': f'{host}-{card}',
            }
            for number, (host, card) in enumerate(places, 1)
        ],
    )
    session.execute(
        insert(Deployable),
        [
            {
                'uuid': str(uuid4()),
                'device_id': number,
                'name': (name := f'{name_host(host)}_gpu{card}'),
                'resource_class': 'PGPU',
                'traits': ['CUSTOM_NVIDIA_1EB8'],
                'num_accelerators': 1,
                'rp_uuid': str(uuid3(NAMESPACE_DNS, name)),
                'typed_attributes': store_attributes(
                    [LARGE if host < LARGE_HOSTS and card < LARGE_CARDS else SMALL]
                ),
            }
            for number, (host, card) in enumerate(places, 1)
        ],
    )


@pytest.fixture
def placement(database: Database) -> FakePlacement:
    """Return a Placement with 10,000 providers that no selector concerns yet."""
    placement = FakePlacement()
    add_compute_nodes(placement, map(name_host, range(HOSTS)))
    record_heartbeat(database, name_host(0))
    database.write(add_fleet)
    return placement


def test_selector_change_costs_calls_for_changes_only(
    database: Database, placement: FakePlacement
) -> None:
    runner = SyncRunner(database, placement)
    runner.sync(*map(name_host, range(HOSTS)))
    assert len(placement.providers) == HOSTS * (1 + CARDS)
    placement.calls.clear()
    create_profile(database, SELECTOR)
    with statements(database) as sql:
        jobs = runner.run()
    assert jobs.count(JobType.SELECTORS) == 1
    assert jobs.count(JobType.PLACEMENT_SYNC) == LARGE_HOSTS
    # One pass over all deployables, then one over those of each changed host.
    assert sum('typed_attributes' in text for text in sql) == 1 + LARGE_HOSTS
    trait = find_trait(SELECTOR)
    matching = [p for p in placement.providers.values() if trait in p.traits]
    assert len(matching) == LARGE_HOSTS * LARGE_CARDS
    # The name of the trait; the root and the tree of each changed host; the traits of
    # each changed provider.
    assert len(placement.calls) == 1 + 2 * LARGE_HOSTS + len(matching) == 501
    assert len(placement.writes) == 1 + len(matching)
