# SPDX-License-Identifier: Apache-2.0
"""Lists of bound ARQs after a reboot of their host that no report has announced."""

from uuid import uuid4

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from cyborg_lite.conductor.arqs.arqs import ArqService
from cyborg_lite.conductor.jobs.runner import JobRunner, Workers, create_owner
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, AttachHandle
from cyborg_lite.db.inventory.agents import store_digest
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from tests.builders.bind_rules import RULES
from tests.builders.rows import HOST, add_arqs, add_card
from tests.doubles.agents import FakeAgents

INSTANCE = str(uuid4())
USER = RequestContext(project_id='b' * 32)
NOVA = RequestContext(project_id='b' * 32, service_request=True)


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


@pytest.fixture
def agents() -> FakeAgents:
    return FakeAgents()


@pytest.fixture
def service(database: Database, agents: FakeAgents) -> ArqService:
    runner = JobRunner(database, {}, create_owner(30), workers=Workers(1, 1))
    runner.stop()
    return ArqService(database, runner, RULES, None, agents)


def read_state(service: ArqService) -> State:
    """Return the state of the only ARQ of the instance, as Nova gets it."""
    query = Query(filters={'instance_uuid': (INSTANCE,)})
    (arq,) = service.list(NOVA, query)
    return arq.state


@pytest.mark.parametrize(
    ('boot_id', 'state'), [('b1', 'Bound'), ('b2', 'Unknown'), ('', 'Bound')]
)
def test_list_compares_boot_of_host(
    database: Database,
    service: ArqService,
    agents: FakeAgents,
    boot_id: str,
    state: str,
) -> None:
    add_bound(database, needs_host=True)
    agents.boot_id = boot_id
    assert read_state(service) == state
    assert agents.calls == [('read_boot_id', HOST, 0)]


def test_list_agent_silent_is_unknown(
    database: Database, service: ArqService, agents: FakeAgents
) -> None:
    add_bound(database, needs_host=True)
    agents.down_hosts.add(HOST)
    assert read_state(service) == 'Unknown'


def test_list_passthrough_does_not_call_agent(
    database: Database, service: ArqService, agents: FakeAgents
) -> None:
    add_bound(database, needs_host=False)
    agents.boot_id = 'b2'
    assert read_state(service) == 'Bound'
    assert agents.calls == []


def test_list_of_user_does_not_call_agent(
    database: Database, service: ArqService, agents: FakeAgents
) -> None:
    add_bound(database, needs_host=True)
    service.list(USER, Query(filters={'instance_uuid': (INSTANCE,)}))
    assert agents.calls == []
