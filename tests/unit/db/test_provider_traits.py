# SPDX-License-Identifier: Apache-2.0
"""What Placement was told of each provider, one statement for however many."""

from sqlalchemy import select

from cyborg_lite.db import provider_traits
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import ProviderTraits
from tests.fakes.statements import statements


def told(database: Database) -> dict[str, list[str]]:
    wanted = select(ProviderTraits.rp_uuid, ProviderTraits.traits)
    rows = database.read(lambda session: session.execute(wanted).all())
    return {row.rp_uuid: row.traits for row in rows}


def test_what_is_recorded_again_replaces_what_was(database: Database) -> None:
    database.write(provider_traits.record, {'a': {'Y', 'X'}, 'b': {'X'}})
    database.write(provider_traits.record, {'b': {'Z'}, 'c': set()})
    assert told(database) == {'a': ['X', 'Y'], 'b': ['Z'], 'c': []}


def test_many_are_one_statement_and_none_is_none(database: Database) -> None:
    with statements(database) as seen:
        database.write(provider_traits.record, {str(n): {'X'} for n in range(64)})
        database.write(provider_traits.record, {})
        database.write(provider_traits.forget, ())
    assert len(seen) == 1


def test_a_provider_that_is_gone_is_forgotten(database: Database) -> None:
    database.write(provider_traits.record, {'a': {'X'}, 'b': {'X'}})
    database.write(provider_traits.forget, ['a'])
    assert told(database) == {'b': ['X']}
