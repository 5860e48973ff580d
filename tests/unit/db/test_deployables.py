# SPDX-License-Identifier: Apache-2.0
"""Deployables as clients see them, with their attributes."""

from dataclasses import replace
from uuid import NAMESPACE_DNS, uuid3

import pytest

from cyborg_lite.db import attributes, deployables, inventory
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.devices import DeployableRecord
from cyborg_lite.model.queries import Query
from tests.fakes.cards import card, host, report, with_parts
from tests.fakes.statements import statements

_ROOT = 'compute-1_0000:01:00.0'


@pytest.fixture
def stocked(database: Database) -> Database:
    """A card with two parts, and a plain one."""
    database.write(inventory.store, report(with_parts(card(1), 'a', 'b'), card(2)))
    return database


def _all(database: Database, **filters: tuple[str, ...]) -> list[DeployableRecord]:
    return list(database.read(deployables.listed, Query(filters=filters)))


def _names(database: Database, **filters: tuple[str, ...]) -> list[str]:
    return [deployable.name for deployable in _all(database, **filters)]


def test_a_deployable_shows_its_place(stocked: Database) -> None:
    by_name = {each.name: each for each in _all(stocked)}
    root, part = by_name[_ROOT], by_name[f'{_ROOT}_a']
    assert (root.parent_id, root.root_id) == (None, None)
    assert (part.parent_id, part.root_id) == (root.id, root.id)
    assert part.device_id == root.device_id
    assert part.rp_uuid == str(uuid3(NAMESPACE_DNS, part.name))
    assert part.num_accelerators == 1
    assert part.driver_name == 'NVIDIA'
    assert part.bitstream_id is None


def test_attributes_come_in_the_order_that_clients_know(database: Database) -> None:
    told = replace(
        card(1).root, traits=tuple('ABCDEFGHIJK'), attributes={'z': '1', 'a': '2'}
    )
    database.write(inventory.store, report(replace(card(1), root=told)))
    [found] = _all(database)
    keys = [attribute.key for attribute in found.attributes]
    assert keys == ['rc', *(f'traits{number}' for number in range(1, 12)), 'a', 'z']
    assert found.attributes[1].value == 'A'
    assert found.attributes[0].deployable_id == found.id


def test_each_deployable_has_its_own_attributes(stocked: Database) -> None:
    first, *others = _all(stocked)
    stocked.write(attributes.create, first.id, 'rack', '7')
    again, *_ = _all(stocked, uuid=(first.uuid,))
    assert 'rack' in {attribute.key for attribute in again.attributes}
    for other in _all(stocked)[1:]:
        assert 'rack' not in {attribute.key for attribute in other.attributes}
    assert len(others) == 3


def test_filters_reach_up_the_tree(stocked: Database) -> None:
    [root] = _all(stocked, name=(_ROOT,))
    below = [f'{_ROOT}_a', f'{_ROOT}_b']
    assert _names(stocked, parent_uuid=(root.uuid,)) == below
    assert _names(stocked, root_uuid=(root.uuid,)) == below
    assert _names(stocked, root_uuid=(root.uuid,), name=(f'{_ROOT}_b',)) == below[1:]
    assert _names(stocked, parent_uuid=('unknown',)) == []
    assert _names(stocked, uuid=(root.uuid,)) == [_ROOT]


def test_a_page_has_the_attributes_of_its_deployables(stocked: Database) -> None:
    first, *_ = _all(stocked)
    query = Query(limit=2, marker=first.uuid, sort_key='created_at')
    page = stocked.read(deployables.listed, query)
    assert len(page) == 2
    assert all(deployable.attributes for deployable in page)


@pytest.mark.parametrize('count', [1, 64])
def test_a_list_costs_two_selects_however_long(database: Database, count: int) -> None:
    database.write(inventory.store, host(count, 1))
    with statements(database) as seen:
        assert len(_all(database)) == count
    assert len(seen) == 2


def test_an_empty_list_costs_one(database: Database) -> None:
    with statements(database) as seen:
        assert _all(database) == []
    assert len(seen) == 1


@pytest.mark.parametrize(
    'key',
    ['uuid', 'name', 'num_accelerators', 'driver_name', 'created_at', 'updated_at'],
)
def test_deployables_can_be_sorted(stocked: Database, key: str) -> None:
    assert len(stocked.read(deployables.listed, Query(sort_key=key))) == 4


def test_unknown_filters_are_refused(stocked: Database) -> None:
    with pytest.raises(InvalidInput, match='board'):
        _all(stocked, board=('x',))
