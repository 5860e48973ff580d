# SPDX-License-Identifier: Apache-2.0
"""Providers of a host with the instances whose ARQs name them."""

from cyborg_lite.db.arqs import binding
from cyborg_lite.db.capacity.provider_capacity import list_own_providers
from cyborg_lite.db.core.engine import Database
from tests.builders.bind_jobs import ANY_PROJECT, BIND_JOB
from tests.builders.rows import HOST, OWNER, add_arqs, add_card, bindings
from tests.support.sql_statements import statements

INSTANCE = '5e7a1c11-0000-4000-8000-000000000001'


def test_list_own_providers_has_instances_of_arqs(database: Database) -> None:
    used, free = add_card(database, 2), add_card(database, 1)
    uuids = add_arqs(database, 2)
    add_arqs(database, 1)  # not bound
    requested = bindings(uuids, used, INSTANCE)
    database.write(binding.accept_bind, requested, ANY_PROJECT, BIND_JOB, OWNER)
    with statements(database) as sql:
        providers = database.read(list_own_providers, HOST)
    assert len(sql) == 2
    assert {provider.uuid: provider.instances for provider in providers} == {
        used: {INSTANCE},
        free: frozenset(),
    }
    assert {provider.resource_class for provider in providers} == {'PGPU'}
    assert database.read(list_own_providers, 'other') == ()
