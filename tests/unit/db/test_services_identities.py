# SPDX-License-Identifier: Apache-2.0
"""Identities of agents, the order of their reports, and the time of their start."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Service as Row
from cyborg_lite.db.hosts import services
from cyborg_lite.db.inventory import reports
from cyborg_lite.errors.hosts import AgentIdentityRefused, ReportOutdated
from cyborg_lite.model.hosts.services import AgentRecord, HeartbeatDetails
from cyborg_lite.model.inventory.host_report import HostReport
from tests.builders.reports import HOST, host
from tests.support.sql_statements import statements

_FIRST, _SECOND = 'identity-1', 'identity-2'


def send_heartbeat(
    database: Database, identity: str, digest: str = '', *, started: bool = False
) -> bool:
    details = HeartbeatDetails('boot', identity=identity, started=started)
    return database.write(services.record_agent_heartbeat, HOST, '1', digest, details)


def build_report(number: int, devices: int = 1, identity: str = _FIRST) -> HostReport:
    return replace(host(devices, 1), identity=identity, number=number)


def agent(database: Database) -> AgentRecord:
    record = database.read(services.find_agent, HOST)
    assert record is not None
    return record


def set_column(database: Database, **values: Any) -> None:
    database.write(lambda session: session.execute(update(Row).values(**values)))


def test_second_identity_is_refused_while_first_is_up(database: Database) -> None:
    send_heartbeat(database, _FIRST)
    before = agent(database)
    with pytest.raises(AgentIdentityRefused, match=f'{HOST} has another agent'):
        send_heartbeat(database, _SECOND)
    with pytest.raises(AgentIdentityRefused):
        database.write(reports.store_report, build_report(1, identity=_SECOND))
    assert agent(database) == before
    assert send_heartbeat(database, _FIRST)


def test_refused_heartbeat_does_not_keep_first_agent_alive(database: Database) -> None:
    send_heartbeat(database, _FIRST)
    past = datetime.now(UTC) - timedelta(hours=1)
    set_column(database, heartbeat_at=past)
    with pytest.raises(AgentIdentityRefused):
        send_heartbeat(database, _SECOND)
    [service] = database.read(services.list_services)
    assert service.heartbeat_at == past


def test_second_identity_replaces_agent_that_is_down(database: Database) -> None:
    database.write(reports.store_report, build_report(7))
    set_column(database, state='down')
    assert send_heartbeat(database, _SECOND, host(1, 1).digest)
    record = agent(database)
    assert (record.identity, record.digest, record.report_number) == (_SECOND, None, 0)


def test_forgotten_identity_is_replaced(database: Database) -> None:
    send_heartbeat(database, _FIRST)
    assert database.write(services.forget_identity, HOST)
    assert not database.write(services.forget_identity, HOST)
    send_heartbeat(database, _SECOND)
    assert agent(database).identity == _SECOND


def test_earlier_agent_without_identity_is_accepted(database: Database) -> None:
    send_heartbeat(database, _FIRST)
    send_heartbeat(database, '')
    database.write(reports.store_report, host(1, 1))
    assert agent(database).identity == _FIRST


def test_report_older_than_stored_is_refused(database: Database) -> None:
    database.write(reports.store_report, build_report(2, devices=2))
    stored = agent(database)
    for number in (1, 2):
        with pytest.raises(ReportOutdated):
            database.write(reports.store_report, build_report(number))
    assert agent(database) == stored
    database.write(reports.store_report, build_report(3))
    assert (agent(database).digest, agent(database).report_number) == (
        build_report(3).digest,
        3,
    )


def test_heartbeat_with_identity_costs_one_statement(database: Database) -> None:
    send_heartbeat(database, _FIRST)
    database.write(reports.store_report, build_report(1))
    with statements(database) as sql:
        assert not send_heartbeat(database, _FIRST, build_report(1).digest)
    assert len(sql) == 1


def test_report_number_costs_one_statement(database: Database) -> None:
    send_heartbeat(database, _FIRST)
    database.write(reports.store_report, host(1, 1))
    with statements(database) as without_number:
        database.write(reports.store_report, host(1, 1))
    with statements(database) as with_number:
        database.write(reports.store_report, build_report(1))
    assert len(with_number) == len(without_number) + 1


def test_started_is_last_start(database: Database) -> None:
    database.write(reports.store_report, build_report(1))
    digest = build_report(1).digest
    past = datetime.now(UTC) - timedelta(hours=1)
    set_column(database, started_at=past)
    send_heartbeat(database, _FIRST, digest)
    assert database.read(services.list_services)[0].started_at == past
    send_heartbeat(database, _FIRST, digest, started=True)
    assert database.read(services.list_services)[0].started_at > past
    set_column(database, started_at=past)
    send_heartbeat(database, _FIRST, 'another digest', started=True)
    assert database.read(services.list_services)[0].started_at > past
