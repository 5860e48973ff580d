# SPDX-License-Identifier: Apache-2.0
"""Reports of agents about host reboots and host events."""

from datetime import UTC, datetime

import pytest

from cyborg_lite.conductor.arqs.recovery import RecoveryService
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.inventory import agents
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.hosts.events import HostEvent, HostEventKind, RecoveryResult
from tests.support.sql_statements import statements

HOST = 'compute-1'


def event(number: int, address: str = '0000:01:00.0') -> HostEvent:
    moment = datetime(2026, 2, 3, tzinfo=UTC)
    return HostEvent(number, HostEventKind.LOSS, address, moment)


@pytest.fixture
def service(database: Database) -> RecoveryService:
    database.write(agents.store_digest, HOST, 'digest', 'boot-1')
    return RecoveryService(database, lambda: None, 60, 3600)


def test_record_events_repeated_are_ignored(service: RecoveryService) -> None:
    assert service.record_events(HOST, []) == 0
    assert service.record_events(HOST, [event(1), event(2)]) == 2
    assert service.record_events(HOST, [event(1), event(2), event(3)]) == 3
    assert service.record_events(HOST, [event(1)]) == 3
    assert service.record_events('another', []) == 0


@pytest.mark.parametrize(
    'events',
    [
        [event(2), event(1)],
        [event(1), event(1)],
        [event(-1)],
        [event(2**63)],
        [event(1, 'x' * 65)],
        [event(1, '\0')],
        [event(number) for number in range(1001)],
    ],
)
def test_record_events_invalid_raises(
    service: RecoveryService, database: Database, events: list[HostEvent]
) -> None:
    with pytest.raises(InvalidInput), statements(database) as sql:
        service.record_events(HOST, events)
    assert sql == []


@pytest.mark.parametrize(
    'result',
    [
        RecoveryResult('', 'boot-1'),
        RecoveryResult('h' * 256, 'boot-1'),
        RecoveryResult(HOST, 'b' * 65),
        RecoveryResult(HOST, 'boot-1', ('u' * 65,)),
        RecoveryResult(HOST, 'boot-1', (), {'u': '\0'}),
        RecoveryResult(HOST, 'boot-1', ('u',) * 16385),
        RecoveryResult('another-host', 'boot-1'),
    ],
)
def test_record_result_invalid_raises(
    service: RecoveryService, database: Database, result: RecoveryResult
) -> None:
    with pytest.raises(InvalidInput), statements(database) as sql:
        service.record_result(HOST, result)
    assert sql == []


def test_record_result_without_handles_is_two_statements(
    service: RecoveryService, database: Database
) -> None:
    with statements(database) as sql:
        result = RecoveryResult(HOST, 'boot-1', ('unheard-of',))
        assert service.record_result(HOST, result) == ()
    assert len(sql) == 2
