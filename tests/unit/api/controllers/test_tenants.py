# SPDX-License-Identifier: Apache-2.0
"""Tenants learn nothing of hosts and of other projects, over all reads and errors."""

import string
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import pytest
from sqlalchemy import update

from cyborg_lite.api.microversion import VERSIONS, Microversion
from cyborg_lite.api.openapi.routes import Route, list_routes
from cyborg_lite.db.arqs.history import describe_failure
from cyborg_lite.db.core import tables
from cyborg_lite.db.jobs import operations
from cyborg_lite.errors import registry
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.arqs.arqs import Actor, State, Step
from cyborg_lite.model.operations import NewOperation, SubjectType
from cyborg_lite.model.queries import SORT_KEYS
from tests.support.api.calls import build_path
from tests.support.api.conversation import (
    ADMIN,
    MANAGER,
    MEMBER,
    OTHER_MEMBER,
    PROJECT,
    READER,
    Client,
)
from tests.support.api.patches import INSTANCE

READS: Final = [
    (route, version)
    for version in VERSIONS
    for route in list_routes(version)
    if route.method == 'GET' and route.path != '/v2/openapi.json'
]
PAGED: Final = [
    (route, version)
    for route, version in READS
    if 'marker' in (*route.arguments, *route.newer)
]
UNKNOWN: Final = str(UUID(int=7))
SECRET: Final = 'rack7-node3 /sys/bus/pci/devices/0000:3b:00.0/reset'


@pytest.fixture
def foreign_uuids(nova: Client, bound: list[str]) -> list[str]:
    """Return the uuids of an ARQ, an operation and a profile that others do not see.

    All texts about the failure name the host.
    """
    error = DriverError(reason=SECRET)
    database = nova.conductor.database
    nova.conductor.change(
        tables.Arq, bound[1], state=State.BIND_FAILED, **describe_failure(error)
    )
    new = NewOperation('bind', SubjectType.ARQ, bound[1], project_id=PROJECT)
    database.write(operations.add, new)
    database.write(operations.record_step, [new.uuid], 'Claimed', 10, SECRET)
    database.write(operations.end_job, [new.uuid], error)
    private = update(tables.DeviceProfile).values(is_public=False)
    database.write(lambda session: session.execute(private))
    return [bound[1], new.uuid, *nova.conductor.profiles]


def build_url(route: Route, uuid: str, query: str = '') -> str:
    path = build_path(route, uuid)
    instance = f'instance={INSTANCE}&' if path == '/instance_events' else ''
    return f'{path}?{instance}{query}'


@pytest.mark.parametrize(('route', 'version'), READS)
def test_tenant_reads_no_host_and_no_foreign_object(
    nova: Client, foreign_uuids: list[str], route: Route, version: Microversion
) -> None:
    tenant, outsider = (nova.as_(role, str(version)) for role in (MEMBER, OTHER_MEMBER))
    for uuid in foreign_uuids:
        path = build_url(route, uuid)
        assert 'rack7' not in tenant.get(path).body.decode()
        answer = outsider.get(path)
        assert answer.status in (200, 400, 403, 404)
        text = answer.body.decode()
        if answer.status == 200:
            assert not any(name in text for name in foreign_uuids), text


@pytest.mark.parametrize(('route', 'version'), PAGED)
def test_marker_of_hidden_object_is_unknown(
    nova: Client, foreign_uuids: list[str], route: Route, version: Microversion
) -> None:
    outsider = nova.as_(OTHER_MEMBER, str(version))
    keys = SORT_KEYS.get(route.path.rpartition('/')[2], ())
    for query in ('', *(f'&sort_key={key}&sort_dir=desc' for key in keys)):
        unknown = outsider.get(build_url(route, UNKNOWN, f'marker={UNKNOWN}{query}'))
        assert unknown.status in (400, 403, 404)
        for uuid in foreign_uuids:
            answer = outsider.get(build_url(route, UNKNOWN, f'marker={uuid}{query}'))
            fault = answer.fault.replace(uuid, UNKNOWN)
            assert (answer.status, fault) == (unknown.status, unknown.fault)


AT = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
PATHS = ('', '?instance=' + INSTANCE, '/{}', '/{}/events')
TENANTS = pytest.mark.parametrize('headers', [MEMBER, READER, MANAGER])


def build_error(kind: type[CyborgError]) -> CyborgError:
    """Return an error whose text contains the secret in each place."""
    parts = string.Formatter().parse(f'{kind.message} {kind.advice}')
    return kind(**{name: SECRET for _, name, _, _ in parts if name})


def fail(client: Client, uuid: str, error: CyborgError) -> None:
    """Have the bind of an ARQ fail, as the conductor stores it."""
    failure = describe_failure(error)
    client.conductor.change(tables.Arq, uuid, state=State.BIND_FAILED, **failure)
    step = Step('BindFailed', Actor.AGENT, AT, error.text, failure['error_code'])
    for method in ('list_arq_steps', 'list_instance_steps'):
        client.conductor.answers[method] = (replace(step, arq_uuid=uuid),)


@pytest.mark.parametrize('code', registry.list_errors())
def test_failure_texts_of_tenant_name_no_host(
    nova: Client, bound: list[str], code: str
) -> None:
    fail(nova, bound[1], build_error(registry.list_errors()[code]))
    for version in ('2.0', '2.4', 'latest'):
        for path in PATHS:
            tenant = nova.as_(MEMBER, version)
            answer = tenant.get('/accelerator_requests' + path.format(bound[1]))
            assert SECRET not in answer.body.decode(), (version, path)


@TENANTS
def test_failure_of_tenant_has_cause_and_code(
    nova: Client, bound: list[str], headers: dict[str, str]
) -> None:
    fail(nova, bound[1], DriverError(reason=SECRET))
    tenant = nova.as_(headers, '2.5')
    arq = tenant.get(f'/accelerator_requests/{bound[1]}').json
    (step,) = tenant.get(f'/accelerator_requests/{bound[1]}/events').json['events']
    cause = 'A driver operation failed on one device. Other devices may work.'
    expected = (cause, 'cyborg_lite.driver.error')
    assert (arq['status_reason'], arq['error_code']) == expected
    assert (step['reason'], step['error_code']) == expected
    refused = nova.as_(headers).get(f'/accelerator_requests?instance={INSTANCE}')
    assert cause in refused.fault


@pytest.mark.parametrize('code', [None, 'cyborg_lite.arq.of_another_release'])
def test_failure_with_unknown_code_has_general_cause(
    nova: Client, bound: list[str], code: str | None
) -> None:
    columns = {'status_reason': SECRET, 'error_code': code}
    nova.conductor.change(tables.Arq, bound[1], state=State.BIND_FAILED, **columns)
    arq = nova.as_(MEMBER, '2.4').get(f'/accelerator_requests/{bound[1]}').json
    assert arq['status_reason'] == registry.describe_cause(CyborgError)


def test_failure_of_admin_and_compute_service_has_reason(
    nova: Client, bound: list[str]
) -> None:
    fail(nova, bound[1], DriverError(reason=SECRET))
    for client in (nova.as_(ADMIN, '2.4'), nova.at('2.4')):
        arq = client.get(f'/accelerator_requests/{bound[1]}').json
        assert arq['status_reason'] == SECRET
    answer = nova.get(f'/accelerator_requests?instance={INSTANCE}')
    assert SECRET in answer.fault


@TENANTS
@pytest.mark.parametrize('state', [State.PROVISIONING, State.BOUND])
def test_lost_device_of_tenant_hides_host(
    nova: Client, bound: list[str], headers: dict[str, str], state: State
) -> None:
    """The host of an unready or lost device stands in an error and in a reason."""
    host = nova.conductor.arqs[bound[1]].hostname
    handle = nova.conductor.arqs[bound[1]].attach_handle_uuid
    assert host is not None
    assert handle is not None
    missing = state is State.BOUND
    nova.conductor.change(tables.Arq, bound[1], state=state)
    nova.conductor.change(tables.AttachHandle, handle, missing=missing)
    path = f'/accelerator_requests?instance={INSTANCE}'
    refused = nova.as_(headers).get(path)
    assert refused.status == (409 if missing else 423)
    assert host not in refused.fault
    assert host in nova.get(path).fault
    (_, arq, _) = nova.as_(headers, '2.4').get(path).json['arqs']
    assert host not in (arq['status_reason'] or '')
