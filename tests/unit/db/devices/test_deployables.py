# SPDX-License-Identifier: Apache-2.0
"""Lists of deployables with their attributes."""

from dataclasses import replace

import pytest

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import deployables
from cyborg_lite.db.inventory import reports
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.errors.devices import AttributeNotFound
from cyborg_lite.model.devices.devices import DeployableRecord
from cyborg_lite.model.queries import Query
from tests.builders.reports import card, host, report, with_parts
from tests.support.sql_statements import statements


@pytest.fixture
def filled_database(database: Database) -> Database:
    """Return a database with two devices; the first has two child deployables."""
    database.write(reports.store_report, report(with_parts(card(1), 'a', 'b'), card(2)))
    return database


def _list_deployables(
    database: Database, **filters: tuple[str, ...]
) -> list[DeployableRecord]:
    return list(database.read(deployables.list_deployables, Query(filters=filters)))


def test_list_deployables_attributes_keep_cyborg_order(database: Database) -> None:
    root = replace(
        card(1).root, traits=tuple('ABCDEFGHIJK'), attributes={'z': '1', 'a': '2'}
    )
    database.write(reports.store_report, report(replace(card(1), root=root)))
    [deployable] = _list_deployables(database)
    keys = [attribute.key for attribute in deployable.attributes]
    assert keys == ['rc', *(f'traits{number}' for number in range(1, 12)), 'a', 'z']
    assert deployable.attributes[1].value == 'A'
    assert deployable.attributes[0].deployable_id == deployable.id


def test_list_deployables_page_includes_attributes(filled_database: Database) -> None:
    first, *_ = _list_deployables(filled_database)
    query = Query(limit=2, marker=first.uuid, sort_key='created_at')
    page = filled_database.read(deployables.list_deployables, query)
    assert len(page) == 2
    assert all(deployable.attributes for deployable in page)


@pytest.mark.parametrize('count', [1, 64])
def test_list_deployables_costs_two_selects(database: Database, count: int) -> None:
    database.write(reports.store_report, host(count, 1))
    with statements(database) as sql:
        assert len(_list_deployables(database)) == count
    assert len(sql) == 2


def test_list_deployables_empty_costs_one_select(database: Database) -> None:
    with statements(database) as sql:
        assert _list_deployables(database) == []
    assert len(sql) == 1


# --- attributes of deployables: list, create and delete -----------------------------


@pytest.fixture
def deployable(database: Database) -> int:
    """Return the id of the first of two deployables."""
    database.write(reports.store_report, report(card(1), card(2)))
    return database.read(deployables.list_deployables, Query())[0].id


def test_delete_reported_attribute_stays_away(
    database: Database, deployable: int
) -> None:
    query = Query(filters={'key': ('rc',)})
    attribute, _ = database.read(deployables.list_attributes, query)
    assert attribute.deployable_id == deployable
    database.write(deployables.delete_attribute, attribute.uuid)
    with pytest.raises(AttributeNotFound):
        database.write(deployables.delete_attribute, attribute.uuid)
    database.write(reports.store_report, report(card(1)))
    database.write(reports.store_report, report(card(1), card(2)))
    (listed,) = database.read(deployables.list_attributes, query)
    assert listed.deployable_id != deployable
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
