# SPDX-License-Identifier: Apache-2.0
"""Free capacity of each provider by the database, and reasons for none."""

from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import binding
from cyborg_lite.db.capacity import provider_capacity
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device, Service
from cyborg_lite.db.hosts import services
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.capacity.explanations import ReasonCode
from cyborg_lite.model.hosts.services import AGENT
from cyborg_lite.model.jobs import NewJob
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.traits import OWNER_CYBORG
from tests.builders.provider_rows import add_device, change_deployable
from tests.builders.rows import HOST, add_arqs, add_card, bindings
from tests.builders.rows import OWNER as JOB_OWNER
from tests.builders.unclean_units import release_unit
from tests.support.sql_statements import statements


def change(database: Database, table: Any, **columns: Any) -> None:
    """Change all rows of a table; the values may be of any type."""

    def write(session: Session) -> None:
        session.execute(update(table).values(**columns))

    database.write(write)


def bind(database: Database, card: str, number: int) -> None:
    uuids = add_arqs(database, number)
    binding_by_arq, scope = bindings(uuids, card), Scope(project_id=None)
    job = database.write(
        binding.accept_bind,
        binding_by_arq,
        scope,
        NewJob(OperationKind.BIND),
        JOB_OWNER,
    )
    database.write(
        binding.claim_for_bind, job, uuids, None, NewJob(OperationKind.NOVA_EVENT)
    )


def test_provider_capacity_allocated_handles_are_not_free(database: Database) -> None:
    card = add_card(database, 4)
    bind(database, card, 3)
    (capacity,) = database.read(provider_capacity.list_provider_capacities)
    assert (capacity.rp_uuid, capacity.hostname) == (card, HOST)
    assert (capacity.total, capacity.free, capacity.free_handles) == (4, 1, 1)
    assert (capacity.closed, capacity.traits) == (None, frozenset({OWNER_CYBORG}))


def test_provider_capacity_reserved_or_missing_is_not_free(database: Database) -> None:
    card = add_card(database, 4)
    change_deployable(database, card, reserved=1, traits=['CUSTOM_t4'])
    add_card(database, 2, missing=True)
    first, second = database.read(provider_capacity.list_provider_capacities)
    by_uuid = {capacity.rp_uuid: capacity for capacity in (first, second)}
    assert by_uuid.pop(card).free == 3
    (missing,) = by_uuid.values()
    assert (missing.total, missing.free, missing.free_handles) == (2, 0, 0)
    assert 'CUSTOM_T4' in {*first.traits, *second.traits}


@pytest.mark.parametrize(
    ('columns', 'code', 'word'),
    [
        (
            {'status': 'maintaining', 'status_reason': 'a fan'},
            ReasonCode.MAINTENANCE,
            'a fan',
        ),
        ({'conflict': 'OWNER_NOVA'}, ReasonCode.MANAGED_ELSEWHERE, 'OWNER_NOVA'),
        ({'health': 'conflict'}, ReasonCode.MANAGED_ELSEWHERE, 'Another service'),
        ({'health': 'failed', 'health_reason': 'ECC.'}, ReasonCode.UNHEALTHY, 'ECC.'),
        ({'health': 'gone'}, ReasonCode.UNHEALTHY, 'gone'),
    ],
)
def test_provider_capacity_unusable_device_has_reason(
    database: Database, columns: dict[str, str], code: ReasonCode, word: str
) -> None:
    add_card(database, 1)
    change(database, Device, **columns)
    (capacity,) = database.read(provider_capacity.list_provider_capacities)
    assert capacity.closed is code
    assert word in capacity.closed_text
    assert '..' not in capacity.closed_text


def test_provider_capacity_host_down_is_closed(database: Database) -> None:
    add_card(database, 1)
    database.write(services.record_heartbeat, AGENT, HOST, '1.0')
    assert database.read(provider_capacity.list_provider_capacities)[0].closed is None
    change(database, Service, state='down')
    assert (
        database.read(provider_capacity.list_provider_capacities)[0].closed
        is ReasonCode.HOST_SILENT
    )


def test_list_provider_capacities_costs_one_statement(database: Database) -> None:
    for number in range(50):
        add_device(database, f'compute-{number}', 'gpu')
    with statements(database) as sql:
        assert len(database.read(provider_capacity.list_provider_capacities)) == 50
    assert len(sql) == 1


def test_provider_capacity_unclean_units_cost_second_statement(
    database: Database,
) -> None:
    release_unit(database)
    add_card(database, 1)
    with statements(database) as sql:
        rows = database.read(provider_capacity.list_provider_capacities)
    assert sorted(len(row.unclean) for row in rows) == [0, 1]
    assert len(sql) == 2


# --- providers of a host with the instances whose ARQs name them --------------------
