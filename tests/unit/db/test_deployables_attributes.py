# SPDX-License-Identifier: Apache-2.0
"""Attributes of deployables: list, create and delete."""

import pytest

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import deployables
from cyborg_lite.db.inventory import reports
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.devices import (
    AttributeExists,
    AttributeNotFound,
    DeployableNotFound,
)
from cyborg_lite.model.queries import Query
from tests.builders.reports import card, report
from tests.support.sql_statements import statements, writes


@pytest.fixture
def deployable(database: Database) -> int:
    """Return the id of the first of two deployables."""
    database.write(reports.store_report, report(card(1), card(2)))
    return database.read(deployables.list_deployables, Query())[0].id


def _keys(database: Database, **filters: tuple[str, ...]) -> list[str]:
    listed_attributes = database.read(
        deployables.list_attributes, Query(filters=filters)
    )
    return [attribute.key for attribute in listed_attributes]


def test_list_attributes_returns_created_attribute(
    database: Database, deployable: int
) -> None:
    attribute = database.write(
        deployables.create_attribute, deployable, 'rack', 'größe \N{ROCKET}'
    )
    query = Query(filters={'uuid': (attribute.uuid,)})
    assert database.read(deployables.list_attributes, query) == (attribute,)
    assert (attribute.key, attribute.value) == ('rack', 'größe \N{ROCKET}')
    assert attribute.updated_at is None


def test_list_attributes_several_filters_all_match(
    database: Database, deployable: int
) -> None:
    deployable_ids = (str(deployable),)
    assert _keys(database, deployable_id=deployable_ids, key=('rc',)) == ['rc']
    assert len(_keys(database, key=('rc',))) == 2
    assert _keys(database, key=('RC',)) == []
    assert _keys(database, deployable_id=('4711',)) == []


@pytest.mark.parametrize('value', ['x', '', str(2**31), '-99999999999'])
def test_list_attributes_invalid_deployable_id_raises(
    database: Database, value: str
) -> None:
    with pytest.raises(InvalidInput):
        _keys(database, deployable_id=(value,))


def test_create_attribute_existing_key_raises(
    database: Database, deployable: int
) -> None:
    database.write(deployables.create_attribute, deployable, 'rack', '7')
    with pytest.raises(AttributeExists, match='rack'):
        database.write(deployables.create_attribute, deployable, 'rack', '8')
    with pytest.raises(AttributeExists, match='rc'):
        database.write(deployables.create_attribute, deployable, 'rc', 'FPGA')


def test_create_attribute_unknown_deployable_raises(database: Database) -> None:
    with pytest.raises(DeployableNotFound, match='4711'):
        database.write(deployables.create_attribute, 4711, 'rack', '7')


def test_delete_attribute_twice_raises_not_found(
    database: Database, deployable: int
) -> None:
    attribute = database.write(deployables.create_attribute, deployable, 'rack', '7')
    database.write(deployables.delete_attribute, attribute.uuid)
    assert 'rack' not in _keys(database)
    with pytest.raises(AttributeNotFound, match=attribute.uuid):
        database.write(deployables.delete_attribute, attribute.uuid)


def test_delete_reported_attribute_stays_away(
    database: Database, deployable: int
) -> None:
    [attribute] = database.read(
        deployables.list_attributes,
        Query(filters={'deployable_id': (str(deployable),), 'key': ('rc',)}),
    )
    database.write(deployables.delete_attribute, attribute.uuid)
    with pytest.raises(AttributeNotFound):
        database.write(deployables.delete_attribute, attribute.uuid)
    database.write(reports.store_report, report(card(1)))
    database.write(reports.store_report, report(card(1), card(2)))
    assert len(_keys(database, key=('rc',))) == 1
    first = database.read(deployables.list_deployables, Query())[0]
    assert 'rc' not in [item.key for item in first.attributes]


def test_list_attributes_deleted_marker_is_unknown(
    database: Database, deployable: int
) -> None:
    """The row of a reported attribute is kept, but no longer listed."""
    listed = database.read(deployables.list_attributes, Query())
    query = Query(marker=listed[0].uuid)
    assert database.read(deployables.list_attributes, query) == listed[1:]
    database.write(deployables.delete_attribute, listed[0].uuid)
    with pytest.raises(InvalidInput, match='is not in the collection'):
        database.read(deployables.list_attributes, query)


def test_create_attribute_replaces_deleted_reported_attribute(
    database: Database, deployable: int
) -> None:
    query = Query(filters={'deployable_id': (str(deployable),), 'key': ('rc',)})
    [attribute] = database.read(deployables.list_attributes, query)
    database.write(deployables.delete_attribute, attribute.uuid)
    created = database.write(deployables.create_attribute, deployable, 'rc', 'mine')
    assert database.read(deployables.list_attributes, query) == (created,)


def test_attribute_operations_cost_two_statements_at_most(
    database: Database, deployable: int
) -> None:
    with statements(database) as sql:
        attribute = database.write(
            deployables.create_attribute, deployable, 'rack', '7'
        )
        _keys(database)
        database.write(deployables.delete_attribute, attribute.uuid)
    # An admin creates and deletes attributes; a report may have the same key.
    assert len(sql) == 5
    assert len(writes(sql)) == 4
