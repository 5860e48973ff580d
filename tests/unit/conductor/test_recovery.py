# SPDX-License-Identifier: Apache-2.0
"""What agents tell of boots and events: followed once, and nonsense refused."""

from datetime import UTC, datetime

import pytest

from cyborg_lite.conductor.recovery import Recovery
from cyborg_lite.db import services
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.host_events import HostEvent, HostEventKind, Outcome
from tests.fakes.statements import statements

HOST = 'compute-1'


def event(number: int, address: str = '0000:01:00.0') -> HostEvent:
    moment = datetime(2026, 2, 3, tzinfo=UTC)
    return HostEvent(number, HostEventKind.LOSS, address, moment)


@pytest.fixture
def told(database: Database) -> Recovery:
    database.write(services.keep_digest, HOST, 'digest', 'boot-1')
    return Recovery(database, lambda: None, 60)


def test_events_are_heard_once(told: Recovery) -> None:
    assert told.hear(HOST, []) == 0
    assert told.hear(HOST, [event(1), event(2)]) == 2
    assert told.hear(HOST, [event(1), event(2), event(3)]) == 3
    assert told.hear(HOST, [event(1)]) == 3
    assert told.hear('another', []) == 0


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
def test_events_that_cannot_be_kept_are_refused(
    told: Recovery, database: Database, events: list[HostEvent]
) -> None:
    with pytest.raises(InvalidInput), statements(database) as seen:
        told.hear(HOST, events)
    assert seen == []


@pytest.mark.parametrize(
    'outcome',
    [
        Outcome('', 'boot-1'),
        Outcome('h' * 256, 'boot-1'),
        Outcome(HOST, 'b' * 65),
        Outcome(HOST, 'boot-1', ('u' * 65,)),
        Outcome(HOST, 'boot-1', (), {'u': '\0'}),
        Outcome(HOST, 'boot-1', ('u',) * 16385),
    ],
)
def test_an_outcome_that_cannot_be_kept_is_refused(
    told: Recovery, database: Database, outcome: Outcome
) -> None:
    with pytest.raises(InvalidInput), statements(database) as seen:
        told.settle(outcome)
    assert seen == []


def test_where_nothing_was_to_be_rebuilt_two_statements_tell_so(
    told: Recovery, database: Database
) -> None:
    with statements(database) as seen:
        assert told.settle(Outcome(HOST, 'boot-1', ('unheard-of',))) == ()
    assert len(seen) == 2
