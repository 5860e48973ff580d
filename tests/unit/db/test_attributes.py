# SPDX-License-Identifier: Apache-2.0
"""Attributes by themselves: listed, added and deleted."""

import pytest

from cyborg_lite.db import attributes, deployables, inventory
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import (
    AttributeExists,
    AttributeNotFound,
    DeployableNotFound,
    InvalidInput,
)
from cyborg_lite.model.queries import Query
from tests.fakes.cards import card, report
from tests.fakes.statements import statements, writes


@pytest.fixture
def deployable(database: Database) -> int:
    """Its id; there is another one."""
    database.write(inventory.store, report(card(1), card(2)))
    return database.read(deployables.listed, Query())[0].id


def _keys(database: Database, **filters: tuple[str, ...]) -> list[str]:
    found = database.read(attributes.listed, Query(filters=filters))
    return [attribute.key for attribute in found]


def test_an_attribute_comes_back_as_it_was_made(
    database: Database, deployable: int
) -> None:
    made = database.write(attributes.create, deployable, 'rack', 'größe \N{ROCKET}')
    query = Query(filters={'uuid': (made.uuid,)})
    assert database.read(attributes.listed, query) == (made,)
    assert (made.key, made.value) == ('rack', 'größe \N{ROCKET}')
    assert made.updated_at is None


def test_all_filters_must_fit(database: Database, deployable: int) -> None:
    mine = (str(deployable),)
    assert _keys(database, deployable_id=mine, key=('rc',)) == ['rc']
    assert len(_keys(database, key=('rc',))) == 2
    assert _keys(database, key=('RC',)) == []
    assert _keys(database, deployable_id=('4711',)) == []


@pytest.mark.parametrize('value', ['x', '', str(2**31), '-99999999999'])
def test_the_id_of_a_deployable_is_a_number_that_can_be(
    database: Database, value: str
) -> None:
    with pytest.raises(InvalidInput):
        _keys(database, deployable_id=(value,))


def test_a_key_can_be_given_once(database: Database, deployable: int) -> None:
    database.write(attributes.create, deployable, 'rack', '7')
    with pytest.raises(AttributeExists, match='rack'):
        database.write(attributes.create, deployable, 'rack', '8')
    with pytest.raises(AttributeExists, match='rc'):
        database.write(attributes.create, deployable, 'rc', 'FPGA')


def test_there_must_be_a_deployable(database: Database) -> None:
    with pytest.raises(DeployableNotFound, match='4711'):
        database.write(attributes.create, 4711, 'rack', '7')


def test_a_deleted_attribute_is_gone(database: Database, deployable: int) -> None:
    made = database.write(attributes.create, deployable, 'rack', '7')
    database.write(attributes.delete, made.uuid)
    assert 'rack' not in _keys(database)
    with pytest.raises(AttributeNotFound, match=made.uuid):
        database.write(attributes.delete, made.uuid)


def test_each_costs_one_statement(database: Database, deployable: int) -> None:
    with statements(database) as seen:
        made = database.write(attributes.create, deployable, 'rack', '7')
        _keys(database)
        database.write(attributes.delete, made.uuid)
    assert len(seen) == 3
    assert len(writes(seen)) == 2
