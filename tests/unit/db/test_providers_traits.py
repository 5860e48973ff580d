# SPDX-License-Identifier: Apache-2.0
"""Traits that Placement has of each provider."""

from sqlalchemy import select

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import ProviderTraits
from cyborg_lite.db.providers import providers
from tests.builders.rows import add_card
from tests.support.sql_statements import statements


def list_published_traits(database: Database) -> dict[str, list[str]]:
    query = select(ProviderTraits.rp_uuid, ProviderTraits.traits)
    rows = database.read(lambda session: session.execute(query).all())
    return {row.rp_uuid: row.traits for row in rows}


def test_record_provider_traits_replaces_earlier_traits(database: Database) -> None:
    database.write(providers.record_provider_traits, {'a': {'Y', 'X'}, 'b': {'X'}})
    database.write(providers.record_provider_traits, {'b': {'Z'}, 'c': set()})
    assert list_published_traits(database) == {'a': ['X', 'Y'], 'b': ['Z'], 'c': []}


def test_record_provider_traits_costs_one_statement(database: Database) -> None:
    with statements(database) as sql:
        database.write(
            providers.record_provider_traits, {str(n): {'X'} for n in range(64)}
        )
        database.write(providers.record_provider_traits, {})
        database.write(providers.delete_provider_traits, ())
    assert len(sql) == 1


def test_delete_unused_traits_keeps_provider_of_deployable(database: Database) -> None:
    used = add_card(database, 1)
    database.write(providers.record_provider_traits, {used: {'X'}, 'b': {'X'}})
    database.write(providers.delete_unused_traits, [used, 'b'])
    assert list_published_traits(database) == {used: ['X']}


def test_delete_provider_traits_deletes_given_provider(database: Database) -> None:
    database.write(providers.record_provider_traits, {'a': {'X'}, 'b': {'X'}})
    database.write(providers.delete_provider_traits, ['a'])
    assert list_published_traits(database) == {'b': ['X']}
