# SPDX-License-Identifier: Apache-2.0
"""Tenants learn nothing of hosts and of other projects, over all reads and markers."""

from typing import Final
from uuid import UUID

import pytest
from sqlalchemy import update

from cyborg_lite.api.microversion import VERSIONS, Microversion
from cyborg_lite.api.openapi.routes import Route, list_routes
from cyborg_lite.db.arqs.history import describe_failure
from cyborg_lite.db.core import tables
from cyborg_lite.db.jobs import operations
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.operations import NewOperation, SubjectType
from cyborg_lite.model.queries import SORT_KEYS
from tests.support.api.conversation import MEMBER, OTHER_MEMBER, PROJECT, Client
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


def build_path(route: Route, uuid: str, query: str = '') -> str:
    names = ('uuid', 'same_uuid', 'device_profile', 'name')
    path = route.path.removeprefix('/v2').format(**dict.fromkeys(names, uuid))
    instance = f'instance={INSTANCE}&' if path == '/instance_events' else ''
    return f'{path}?{instance}{query}'


@pytest.mark.parametrize(('route', 'version'), READS)
def test_tenant_reads_no_host_and_no_foreign_object(
    nova: Client, foreign_uuids: list[str], route: Route, version: Microversion
) -> None:
    tenant, outsider = (nova.as_(role, str(version)) for role in (MEMBER, OTHER_MEMBER))
    for uuid in foreign_uuids:
        path = build_path(route, uuid)
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
        unknown = outsider.get(build_path(route, UNKNOWN, f'marker={UNKNOWN}{query}'))
        assert unknown.status in (400, 403, 404)
        for uuid in foreign_uuids:
            answer = outsider.get(build_path(route, UNKNOWN, f'marker={uuid}{query}'))
            fault = answer.fault.replace(uuid, UNKNOWN)
            assert (answer.status, fault) == (unknown.status, unknown.fault)
