# SPDX-License-Identifier: Apache-2.0
"""Services: start, heartbeats and lists."""

from datetime import UTC, datetime, timedelta

import pytest

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.hosts.services import AGENT, Service, ServiceState
from cyborg_lite.model.queries import Query
from tests.builders.service_rows import (
    LONG_AGO,
    expire_heartbeat,
    mark_down,
    record_heartbeat,
)
from tests.support.sql_statements import statements

CONDUCTOR = 'cyborg-lite-conductor'


def list_services(database: Database, **filters: str) -> list[tuple[str, str]]:
    query = Query(filters={name: (value,) for name, value in filters.items()})
    services_found = database.read(services.list_services, query)
    return [(service.binary, service.host) for service in services_found]


def read_only_service(database: Database) -> Service:
    (service,) = database.read(services.list_services)
    return service


def test_record_start_sets_state_and_times(database: Database) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    database.write(services.record_start, CONDUCTOR, 'ctl1', '0.1.0')
    service = read_only_service(database)
    assert (service.binary, service.host) == (CONDUCTOR, 'ctl1')
    assert (service.version, service.state) == ('0.1.0', ServiceState.UP)
    assert before < service.started_at <= datetime.now(UTC) + timedelta(seconds=1)
    assert before < service.heartbeat_at <= datetime.now(UTC) + timedelta(seconds=1)


def test_record_heartbeat_keeps_uuid_and_start_time(database: Database) -> None:
    expire_heartbeat(database, 'compute-1')
    before = read_only_service(database)
    record_heartbeat(database, 'compute-1')
    after = read_only_service(database)
    assert before.heartbeat_at == LONG_AGO
    assert after.heartbeat_at > LONG_AGO
    assert (after.uuid, after.started_at) == (before.uuid, before.started_at)


def test_record_heartbeat_keeps_state_down(database: Database) -> None:
    """The liveness check of the conductor marks a service up again."""
    mark_down(database, 'compute-1')
    record_heartbeat(database, 'compute-1')
    assert read_only_service(database).state is ServiceState.DOWN


def test_record_agent_digest_unchanged_costs_one_statement(database: Database) -> None:
    database.write(services.store_digest, 'compute-1', 'digest', 'boot')
    with statements(database) as sql:
        needs_report = database.write(
            services.record_agent_digest, 'compute-1', '0.1.0', 'digest'
        )
    assert needs_report is False
    assert len(sql) == 1


def test_list_services_filters_by_binary_host_state(database: Database) -> None:
    record_heartbeat(database, 'ctl1', CONDUCTOR)
    record_heartbeat(database, 'compute-1')
    mark_down(database, 'compute-2')
    agents = [(AGENT, 'compute-1'), (AGENT, 'compute-2')]
    assert list_services(database) == [(CONDUCTOR, 'ctl1'), *agents]
    assert list_services(database, binary=AGENT) == agents
    assert list_services(database, host='ctl1') == [(CONDUCTOR, 'ctl1')]
    assert list_services(database, state='down') == [agents[1]]
    assert list_services(database, state='up', binary=AGENT) == [agents[0]]


def test_list_services_marker_continues_page(database: Database) -> None:
    for number in range(3):
        record_heartbeat(database, f'compute-{number}')
    (first,) = database.read(services.list_services, Query(limit=1, sort_key='host'))
    second_page = Query(marker=first.uuid, sort_key='host', descending=False)
    hosts = [
        service.host for service in database.read(services.list_services, second_page)
    ]
    assert (first.host, hosts) == ('compute-0', ['compute-1', 'compute-2'])


def test_list_services_unknown_filter_raises(database: Database) -> None:
    with pytest.raises(InvalidInput, match='colour'):
        list_services(database, colour='red')
