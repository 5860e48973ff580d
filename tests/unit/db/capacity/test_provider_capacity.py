# SPDX-License-Identifier: Apache-2.0
"""Free capacity of each provider by the database, and reasons for none."""

import pytest

from cyborg_lite.db.capacity import provider_capacity
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device
from cyborg_lite.model.capacity.explanations import ReasonCode
from cyborg_lite.model.traits import OWNER_CYBORG
from tests.builders.bound_arqs import bind_arqs
from tests.builders.provider_rows import add_device, change_deployable
from tests.builders.rows import HOST, add_arqs, add_card
from tests.builders.service_rows import mark_down, mark_up
from tests.builders.table_rows import change_rows
from tests.builders.unclean_units import release_unit
from tests.support.sql_statements import statements


def test_provider_capacity_allocated_handles_are_not_free(database: Database) -> None:
    card = add_card(database, 4)
    bind_arqs(database, add_arqs(database, 3), card)
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
    change_rows(database, Device, **columns)
    (capacity,) = database.read(provider_capacity.list_provider_capacities)
    assert capacity.closed is code
    assert word in capacity.closed_text
    assert '..' not in capacity.closed_text


def test_provider_capacity_host_down_is_closed(database: Database) -> None:
    add_card(database, 1)
    for mark, closed in ((mark_up, None), (mark_down, ReasonCode.HOST_SILENT)):
        mark(database, HOST)
        (capacity,) = database.read(provider_capacity.list_provider_capacities)
        assert capacity.closed is closed


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


def test_count_arqs_by_state(database: Database) -> None:
    assert database.read(provider_capacity.count_arqs) == {}
    add_arqs(database, 3)
    assert database.read(provider_capacity.count_arqs) == {'Initial': 3}
