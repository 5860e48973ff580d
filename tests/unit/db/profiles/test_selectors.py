# SPDX-License-Identifier: Apache-2.0
"""Selectors of stored profiles, and the hosts whose providers must change."""

from cyborg_lite.db.capacity import provider_capacity
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import selectors
from cyborg_lite.db.providers import providers
from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.typed_attributes import (
    AttributeDeclaration,
    AttributeType,
)
from tests.builders.selector_fleets import (
    add_deployable,
    compile_keys,
    compile_set,
    create_profile,
    find_trait,
    make_group,
)
from tests.builders.service_rows import mark_down
from tests.support.sql_statements import statements

LARGE = typed_attributes.MEMORY.of(81920)
SELECTOR = compile_keys(selector='device.memory_mib >= 40GiB')
TRAIT = find_trait(SELECTOR)
SAME_CARD = compile_set('card')


def test_list_outdated_hosts_is_one_statement(database: Database) -> None:
    for host in ('a', 'b', 'c', 'd'):
        rp_uuid = add_deployable(database, host, 'gpu', LARGE)
        if host == 'b':
            database.write(providers.record_provider_traits, {rp_uuid: [TRAIT]})
    add_deployable(database, 'e', 'gpu')
    mark_down(database, 'c')
    create_profile(database, SELECTOR)
    active = database.read(selectors.list_selectors)
    with statements(database) as sql:
        assert database.read(selectors.list_outdated_hosts, active) == ('a', 'd')
    assert len(sql) == 1
    assert database.read(selectors.list_outdated_hosts, ()) == ('b',)


def test_only_driver_knows_what_group_shares(database: Database) -> None:
    shared = typed_attributes.SAME_CARD
    add_deployable(database, 'a', 'card')
    for host, attributes in (('b', ()), ('c', (shared.of(False),))):
        make_group(database, add_deployable(database, host, 'group', *attributes))
    make_group(database, add_deployable(database, 'd', 'group', shared.of(True)))
    create_profile(database, SAME_CARD)
    active = database.read(selectors.list_selectors)
    with statements(database) as sql:
        assert database.read(selectors.list_outdated_hosts, active) == ('a', 'd')
    assert len(sql) == 1
    matching = [
        host for host in 'abcd' if find_trait(SAME_CARD) in list_traits(database, host)
    ]
    assert matching == ['a', 'd']
    capacities = database.read(provider_capacity.list_provider_capacities, active)
    assert [find_trait(SAME_CARD) in item.traits for item in capacities] == [
        True,
        False,
        False,
        True,
    ]


def list_traits(database: Database, host: str) -> tuple[str, ...]:
    (row,) = database.read(providers.list_providers_of_host, host)
    return row.traits


def test_list_declarations_contains_reported_names(database: Database) -> None:
    cells = AttributeDeclaration('cells', AttributeType.INTEGER)
    add_deployable(database, 'a', 'first', cells.of(1), LARGE)
    add_deployable(database, 'a', 'second', cells.of(2))
    declared = database.read(selectors.list_declarations)
    assert [item.name for item in declared].count('cells') == 1
    assert {*typed_attributes.SHARED, *typed_attributes.OF_EVERY_DEVICE} < {*declared}
