# SPDX-License-Identifier: Apache-2.0
"""Operations on ARQs, and their project scope."""

from uuid import uuid4

import pytest

from cyborg_lite.conductor.arqs.arqs import ArqService
from cyborg_lite.conductor.jobs.runner import JobRunner, Workers, create_owner
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.arqs import ArqNotFound, InvalidPatch
from cyborg_lite.errors.requests import ServiceTokenRequired
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from tests.builders.bind_rules import RULES
from tests.builders.rows import (
    PROJECT,
    add_arqs,
    add_card,
    add_profile,
    bindings,
    states,
)
from tests.support.sql_statements import statements, writes

OTHER = 'c' * 32


def caller(
    project: str = PROJECT, *, admin: bool = False, service: bool = False
) -> RequestContext:
    roles = ['admin', 'member'] if admin else ['member']
    return RequestContext(
        is_admin=admin, project_id=project, roles=roles, service_request=service
    )


@pytest.fixture
def arqs(database: Database) -> ArqService:
    # The runner is never started, so an accepted ARQ stays in BindStarted.
    runner = JobRunner(database, {}, create_owner(30), workers=Workers(1, 1))
    runner.stop()
    return ArqService(database, runner, RULES)


def test_create_eight_arqs_is_one_write(database: Database, arqs: ArqService) -> None:
    name = add_profile(database, [{'resources:PGPU': '8'}])
    with statements(database) as sql:
        arqs.create(caller(), name)
    assert len(sql) == 2
    assert len(writes(sql)) == 1


@pytest.mark.parametrize(
    'filters', [{}, {'instance_uuid': ('adeb91d5-34ae-48a7-b31a-4de8a7d7dbb2',)}]
)
def test_list_is_one_select(
    database: Database, arqs: ArqService, filters: dict[str, tuple[str, ...]]
) -> None:
    add_arqs(database, 3)
    with statements(database) as sql:
        arqs.list(caller(), Query(filters))
    assert len(sql) == 1


def test_list_as_service_by_instance_crosses_projects(
    database: Database, arqs: ArqService
) -> None:
    uuids, instance = add_arqs(database, 1, OTHER), str(uuid4())
    requested = bindings(uuids, add_card(database, 1), instance)
    arqs.bind(caller(OTHER, service=True), requested)
    nova = caller(service=True)
    of_instance = Query({'instance_uuid': (instance,)})
    assert [arq.uuid for arq in arqs.list(nova, of_instance)] == uuids
    assert [arq.uuid for arq in arqs.list(nova, Query({'uuid': tuple(uuids)}))] == uuids
    # Without a filter, and for ARQs without an instance, the project counts.
    assert arqs.list(nova, Query()) == ()
    unbound = add_arqs(database, 1, OTHER)
    assert arqs.list(nova, Query({'uuid': tuple(unbound)})) == ()


def test_bind_without_service_token_raises(
    database: Database, arqs: ArqService
) -> None:
    uuids = add_arqs(database, 1)
    requested = bindings(uuids, add_card(database, 1))
    admin = caller(admin=True)
    refused = pytest.raises(ServiceTokenRequired, match='requires a service token')
    with refused:
        arqs.bind(admin, requested)
    with refused:
        arqs.unbind(admin, uuids)
    with refused:
        arqs.delete_of_instance(admin, str(uuid4()))
    assert states(database, uuids) == ['Initial']


def test_bind_two_instances_raises(database: Database, arqs: ArqService) -> None:
    (first, second), card = add_arqs(database, 2), add_card(database, 2)
    requested = bindings([first], card) | bindings([second], card)
    with pytest.raises(InvalidPatch, match='same instance'):
        arqs.bind(caller(service=True), requested)
    assert states(database, [first, second]) == ['Initial', 'Initial']


def test_bind_other_project_raises(database: Database, arqs: ArqService) -> None:
    uuids = add_arqs(database, 1, OTHER)
    requested = bindings(uuids, add_card(database, 1))
    with pytest.raises(ArqNotFound):
        arqs.bind(caller(service=True), requested)
