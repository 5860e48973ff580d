# SPDX-License-Identifier: Apache-2.0
"""Who may ask what about whose accelerator requests."""

from uuid import uuid4

import pytest

from cyborg_lite.conductor.arqs import Arqs
from cyborg_lite.conductor.jobs import JobRunner, owner_of_process
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import (
    ArqNotFound,
    DeviceProfileNotFound,
    InvalidPatch,
    ServiceTokenRequired,
)
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from tests.fakes.rows import (
    PROJECT,
    add_arqs,
    add_card,
    add_profile,
    bindings,
    states,
)
from tests.fakes.statements import statements, writes
from tests.unit.conductor.test_binding import RULES

OTHER = 'c' * 32


def caller(
    project: str = PROJECT, *, admin: bool = False, service: bool = False
) -> RequestContext:
    roles = ['admin', 'member'] if admin else ['member']
    return RequestContext(project_id=project, roles=roles, service_request=service)


@pytest.fixture
def arqs(database: Database) -> Arqs:
    # Never started: what is accepted stays in BindStarted.
    runner = JobRunner(database, {}, owner_of_process(30), workers=1)
    runner.stop()
    return Arqs(database, runner, RULES)


def test_requests_come_in_the_order_of_the_groups_and_are_their_creators(
    database: Database, arqs: Arqs
) -> None:
    groups = [{'resources:PGPU': '2'}, {'resources:FPGA': '1'}]
    name = add_profile(database, groups)
    made = arqs.create(caller(), name)
    assert [arq.device_profile_group_id for arq in made] == [0, 0, 1]
    assert {arq.project_id for arq in made} == {PROJECT}
    assert arqs.list(caller(), Query(detailed=True)) == made


def test_eight_requests_are_made_by_one_statement(
    database: Database, arqs: Arqs
) -> None:
    name = add_profile(database, [{'resources:PGPU': '8'}])
    with statements(database) as sent:
        arqs.create(caller(), name)
    assert len(sent) == 2
    assert len(writes(sent)) == 1


def test_a_profile_that_is_not_there_makes_none(arqs: Arqs) -> None:
    with pytest.raises(DeviceProfileNotFound):
        arqs.create(caller(), '!@#$%')


@pytest.mark.parametrize('filters', [{}, {'instance_uuid': (str(uuid4()),)}])
def test_a_list_is_one_select(
    database: Database, arqs: Arqs, filters: dict[str, tuple[str, ...]]
) -> None:
    add_arqs(database, 3)
    with statements(database) as sent:
        arqs.list(caller(), Query(filters))
    assert len(sent) == 1


def test_a_tenant_sees_its_own_and_an_admin_all(database: Database, arqs: Arqs) -> None:
    mine, theirs = add_arqs(database, 1), add_arqs(database, 1, OTHER)
    assert [arq.uuid for arq in arqs.list(caller(), Query())] == mine
    seen = [arq.uuid for arq in arqs.list(caller(admin=True), Query())]
    assert seen == mine + theirs


def test_nova_sees_what_an_instance_has_in_whatever_project(
    database: Database, arqs: Arqs
) -> None:
    uuids, instance = add_arqs(database, 1, OTHER), str(uuid4())
    wanted = bindings(uuids, add_card(database, 1), instance)
    arqs.bind(caller(OTHER, service=True), wanted)
    nova = caller(service=True)
    of_instance = Query({'instance_uuid': (instance,)})
    assert [arq.uuid for arq in arqs.list(nova, of_instance)] == uuids
    assert [arq.uuid for arq in arqs.list(nova, Query({'uuid': tuple(uuids)}))] == uuids
    # But the plain list stays the caller's own, and so does what has no instance.
    assert arqs.list(nova, Query()) == ()
    unbound = add_arqs(database, 1, OTHER)
    assert arqs.list(nova, Query({'uuid': tuple(unbound)})) == ()


def test_only_a_service_binds_and_unbinds_whatever_its_roles(
    database: Database, arqs: Arqs
) -> None:
    uuids = add_arqs(database, 1)
    wanted = bindings(uuids, add_card(database, 1))
    admin = caller(admin=True)
    refused = pytest.raises(ServiceTokenRequired, match='requires a service token')
    with refused:
        arqs.bind(admin, wanted)
    with refused:
        arqs.unbind(admin, uuids)
    with refused:
        arqs.delete_of_instance(admin, str(uuid4()))
    assert states(database, uuids) == ['Initial']


def test_one_patch_is_for_one_instance(database: Database, arqs: Arqs) -> None:
    (first, second), card = add_arqs(database, 2), add_card(database, 2)
    wanted = bindings([first], card) | bindings([second], card)
    with pytest.raises(InvalidPatch, match='same instance'):
        arqs.bind(caller(service=True), wanted)
    assert states(database, [first, second]) == ['Initial', 'Initial']


def test_a_service_binds_only_what_its_user_may_see(
    database: Database, arqs: Arqs
) -> None:
    uuids = add_arqs(database, 1, OTHER)
    wanted = bindings(uuids, add_card(database, 1))
    with pytest.raises(ArqNotFound):
        arqs.bind(caller(service=True), wanted)


def test_deleting_names_what_was_not_there_after_deleting_the_rest(
    database: Database, arqs: Arqs
) -> None:
    uuids, unknown = add_arqs(database, 2), str(uuid4())
    with pytest.raises(ArqNotFound, match=unknown):
        arqs.delete(caller(), [*uuids, unknown])
    assert states(database, uuids) == []
