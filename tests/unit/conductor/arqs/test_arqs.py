# SPDX-License-Identifier: Apache-2.0
"""Operations on ARQs: scope, cost, limits, and reboots that no report has announced."""

from collections.abc import Collection, Mapping
from uuid import uuid4

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from cyborg_lite.clients.limits import KeystoneLimits
from cyborg_lite.conductor.arqs.arqs import ArqService, LimitService
from cyborg_lite.conductor.jobs.runner import JobRunner, Workers, create_owner
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, AttachHandle
from cyborg_lite.db.inventory.agents import store_digest
from cyborg_lite.errors.arqs import ArqNotFound, InvalidPatch
from cyborg_lite.errors.requests import ServiceTokenRequired
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.arqs.project_limits import ProjectLimits, ResourceUse
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from tests.builders.bind_rules import RULES
from tests.builders.rows import (
    HOST,
    PROJECT,
    add_arqs,
    add_card,
    add_profile,
    bindings,
    states,
)
from tests.doubles.agents import FakeAgents
from tests.support.sql_statements import statements, writes

OTHER = 'c' * 32
INSTANCE = str(uuid4())
USER = RequestContext(project_id=PROJECT)
NOVA = RequestContext(project_id=PROJECT, service_request=True)
NOVA_OF_OTHER = RequestContext(project_id=OTHER, service_request=True)
ADMIN = RequestContext(is_admin=True, project_id=PROJECT)


@pytest.fixture
def agents() -> FakeAgents:
    return FakeAgents()


@pytest.fixture
def arqs(database: Database, agents: FakeAgents) -> ArqService:
    # The runner is never started, so an accepted ARQ stays in BindStarted.
    runner = JobRunner(database, {}, create_owner(30), workers=Workers(1, 1))
    runner.stop()
    return ArqService(database, runner, RULES, agents=agents)


def test_create_eight_arqs_is_one_write(database: Database, arqs: ArqService) -> None:
    name = add_profile(database, [{'resources:PGPU': '8'}])
    with statements(database) as sql:
        arqs.create(USER, name)
    assert len(sql) == 2
    assert len(writes(sql)) == 1


@pytest.mark.parametrize('filters', [{}, {'instance_uuid': (INSTANCE,)}])
def test_list_is_one_select(
    database: Database, arqs: ArqService, filters: dict[str, tuple[str, ...]]
) -> None:
    add_arqs(database, 3)
    with statements(database) as sql:
        arqs.list(USER, Query(filters))
    assert len(sql) == 1


def test_list_as_service_crosses_projects_by_instance_or_uuid(
    database: Database, arqs: ArqService
) -> None:
    uuids = add_arqs(database, 1, OTHER)
    arqs.bind(NOVA_OF_OTHER, bindings(uuids, add_card(database, 1), INSTANCE))
    for filters in ({'instance_uuid': (INSTANCE,)}, {'uuid': tuple(uuids)}):
        assert [arq.uuid for arq in arqs.list(NOVA, Query(filters))] == uuids
    # Without a filter, and for ARQs without an instance, the project counts.
    assert arqs.list(NOVA, Query()) == ()
    unbound = add_arqs(database, 1, OTHER)
    assert arqs.list(NOVA, Query({'uuid': tuple(unbound)})) == ()


def test_bind_without_service_token_raises(
    database: Database, arqs: ArqService
) -> None:
    uuids = add_arqs(database, 1)
    requested = bindings(uuids, add_card(database, 1))
    refused = pytest.raises(ServiceTokenRequired, match='requires a service token')
    with refused:
        arqs.bind(ADMIN, requested)
    with refused:
        arqs.unbind(ADMIN, uuids)
    with refused:
        arqs.delete_of_instance(ADMIN, str(uuid4()))
    assert states(database, uuids) == ['Initial']


def test_bind_two_instances_raises(database: Database, arqs: ArqService) -> None:
    (first, second), card = add_arqs(database, 2), add_card(database, 2)
    requested = bindings([first], card) | bindings([second], card)
    with pytest.raises(InvalidPatch, match='same instance'):
        arqs.bind(NOVA, requested)
    assert states(database, [first, second]) == ['Initial', 'Initial']


def test_bind_other_project_raises(database: Database, arqs: ArqService) -> None:
    uuids = add_arqs(database, 1, OTHER)
    requested = bindings(uuids, add_card(database, 1))
    with pytest.raises(ArqNotFound):
        arqs.bind(NOVA, requested)


# --- reboots of the host --------------------------------------------------------------


def add_bound(database: Database, *, needs_host: bool) -> None:
    """Add a bound ARQ of the instance, and the report of boot b1."""
    (uuid,) = add_arqs(database, 1)
    add_card(database, 1, needs_host=needs_host)

    def write(session: Session) -> None:
        bound = {'state': 'Bound', 'instance_uuid': INSTANCE, 'hostname': HOST}
        session.execute(update(Arq).values(**bound))
        session.execute(update(AttachHandle).values(arq_uuid=uuid))
        store_digest(session, HOST, 'digest', 'b1')

    database.write(write)


def read_state(service: ArqService, context: RequestContext = NOVA) -> State:
    """Return the state of the only ARQ of the instance, as a caller gets it."""
    query = Query(filters={'instance_uuid': (INSTANCE,)})
    (arq,) = service.list(context, query)
    return arq.state


@pytest.mark.parametrize(
    ('boot_id', 'state'), [('b1', 'Bound'), ('b2', 'Unknown'), ('', 'Bound')]
)
def test_list_compares_boot_of_host(
    database: Database, arqs: ArqService, agents: FakeAgents, boot_id: str, state: str
) -> None:
    add_bound(database, needs_host=True)
    agents.boot_id = boot_id
    assert read_state(arqs) == state
    assert agents.calls == [('read_boot_id', HOST, 0)]


def test_list_agent_silent_is_unknown(
    database: Database, arqs: ArqService, agents: FakeAgents
) -> None:
    add_bound(database, needs_host=True)
    agents.down_hosts.add(HOST)
    assert read_state(arqs) == 'Unknown'


@pytest.mark.parametrize(('context', 'needs_host'), [(NOVA, False), (USER, True)])
def test_list_calls_agent_only_for_nova_and_prepared_handles(
    database: Database,
    arqs: ArqService,
    agents: FakeAgents,
    context: RequestContext,
    needs_host: bool,
) -> None:
    add_bound(database, needs_host=needs_host)
    agents.boot_id = 'b2'
    assert read_state(arqs, context) == 'Bound'
    assert agents.calls == []


# --- limits ---------------------------------------------------------------------------


class FakeKeystone(KeystoneLimits):
    """Keystone with the same limit for all resources."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def read_limits(self, project_id: str, names: Collection[str]) -> Mapping[str, int]:
        self.names = set(names)
        return dict.fromkeys(names, 3)


def test_limits_of_classes_of_profile_are_read(database: Database) -> None:
    profile = add_profile(database, [{'resources:PGPU': '1'}])
    keystone = FakeKeystone()
    assert LimitService(database, keystone).prepare(USER, profile) == (
        ProjectLimits(PROJECT, {'accelerator_requests': 3, 'class:PGPU': 3})
    )
    assert keystone.names == {'accelerator_requests', 'class:PGPU'}


def test_caller_without_project_has_no_limits(database: Database) -> None:
    service = LimitService(database, FakeKeystone())
    assert service.prepare(RequestContext(), 'any') is None


def test_list_shows_limits_of_keystone_and_use(database: Database) -> None:
    add_profile(database, [{'resources:PGPU': '1'}])
    service = LimitService(database, FakeKeystone(), 5)
    assert service.list(USER) == (
        ResourceUse('accelerator_requests', 3, 0),
        ResourceUse('class:PGPU', 3, 0),
        ResourceUse('unbound_requests', 5, 0),
    )
