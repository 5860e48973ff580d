# SPDX-License-Identifier: Apache-2.0
"""Daemons as they tell of themselves, and as they are asked for."""

from datetime import UTC, datetime, timedelta

import pytest

from cyborg_lite.db import services
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.queries import Query
from cyborg_lite.model.services import Service, ServiceState
from tests.fakes.daemons import LONG_AGO, call_down, fall_silent, speak
from tests.fakes.statements import statements

CONDUCTOR = 'cyborg-lite-conductor'


def listed(database: Database, **filters: str) -> list[tuple[str, str]]:
    query = Query(filters={name: (value,) for name, value in filters.items()})
    found = database.read(services.listed, query)
    return [(one.binary, one.host) for one in found]


def only(database: Database) -> Service:
    (service,) = database.read(services.listed)
    return service


def test_a_daemon_is_up_since_it_spoke(database: Database) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    database.write(services.start, CONDUCTOR, 'ctl1', '0.1.0')
    service = only(database)
    assert (service.binary, service.host) == (CONDUCTOR, 'ctl1')
    assert (service.version, service.state) == ('0.1.0', ServiceState.UP)
    assert before < service.started_at <= datetime.now(UTC) + timedelta(seconds=1)
    assert before < service.heartbeat_at <= datetime.now(UTC) + timedelta(seconds=1)


def test_a_heartbeat_keeps_who_it_is_and_since_when(database: Database) -> None:
    fall_silent(database, 'compute-1')
    before = only(database)
    speak(database, 'compute-1')
    after = only(database)
    assert before.heartbeat_at == LONG_AGO
    assert after.heartbeat_at > LONG_AGO
    assert (after.uuid, after.started_at) == (before.uuid, before.started_at)


def test_a_heartbeat_does_not_judge(database: Database) -> None:
    """That a daemon is back is found out where it is acted upon."""
    call_down(database, 'compute-1')
    speak(database, 'compute-1')
    assert only(database).state is ServiceState.DOWN


def test_the_heartbeat_of_an_agent_that_we_know_is_one_statement(
    database: Database,
) -> None:
    database.write(services.keep_digest, 'compute-1', 'digest', 'boot')
    with statements(database) as seen:
        known = database.write(services.beat_agent, 'compute-1', '0.1.0', 'digest')
    assert known is False
    assert len(seen) == 1


def test_services_are_found_by_what_they_are(database: Database) -> None:
    speak(database, 'ctl1', CONDUCTOR)
    speak(database, 'compute-1')
    call_down(database, 'compute-2')
    agents = [(services.AGENT, 'compute-1'), (services.AGENT, 'compute-2')]
    assert listed(database) == [(CONDUCTOR, 'ctl1'), *agents]
    assert listed(database, binary=services.AGENT) == agents
    assert listed(database, host='ctl1') == [(CONDUCTOR, 'ctl1')]
    assert listed(database, state='down') == [agents[1]]
    assert listed(database, state='up', binary=services.AGENT) == [agents[0]]


def test_services_come_in_pages(database: Database) -> None:
    for number in range(3):
        speak(database, f'compute-{number}')
    (first,) = database.read(services.listed, Query(limit=1, sort_key='host'))
    rest = Query(marker=first.uuid, sort_key='host', descending=False)
    hosts = [one.host for one in database.read(services.listed, rest)]
    assert (first.host, hosts) == ('compute-0', ['compute-1', 'compute-2'])


def test_an_unknown_filter_is_refused(database: Database) -> None:
    with pytest.raises(InvalidInput, match='colour'):
        listed(database, colour='red')
