# SPDX-License-Identifier: Apache-2.0
"""A heartbeat without news waits to be written; what the database says still counts."""

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.inventory import Inventory
from cyborg_lite.conductor.pulses import Pulses
from cyborg_lite.db import services
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Service as Row
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.services import Pulse, Vitals
from cyborg_lite.rpc.context import of_daemon
from tests.fakes.cards import HOST, host
from tests.fakes.statements import statements

REPORT = host(2, 2)
PULSE = Pulse(HOST, '1.0', REPORT.digest, REPORT.boot_id)


@pytest.fixture
def pulses(database: Database) -> Pulses:
    return Pulses(database, threading.Event())


@pytest.fixture
def told(database: Database, pulses: Pulses) -> Inventory:
    """It has the report, and has heard one heartbeat."""
    told = Inventory(database, lambda: None, pulses)
    told.report(of_daemon(), REPORT)
    assert not beat(told)
    return told


def beat(told: Inventory, pulse: Pulse = PULSE) -> bool:
    vitals = Vitals(pulse.boot_id)
    return told.heartbeat(pulse.host, pulse.digest, pulse.version, vitals)


def age(database: Database) -> timedelta:
    """Since the heartbeat that the database knows of."""
    [service] = database.read(services.listed)
    return datetime.now(UTC) - service.heartbeat_at


def make_old(database: Database) -> None:
    then = datetime.now(UTC) - timedelta(seconds=600)
    database.write(
        lambda session: session.execute(update(Row).values(heartbeat_at=then))
    )


def test_it_is_answered_at_once_and_written_later(
    told: Inventory, database: Database, pulses: Pulses
) -> None:
    make_old(database)
    with statements(database) as seen:
        assert not beat(told)
    assert seen == []
    assert age(database) > timedelta(seconds=500)
    pulses.write()
    assert age(database) < timedelta(seconds=100)


def test_all_hosts_are_written_with_two_statements(
    told: Inventory, database: Database, pulses: Pulses
) -> None:
    others = [replace(PULSE, host=f'other-{number}') for number in range(50)]
    for other in others:
        database.write(services.keep_digest, other.host, other.digest, other.boot_id)
        assert not beat(told, other)
    assert [other.host for other in others if beat(told, other)] == []
    with statements(database) as seen:
        pulses.write()
    assert len(seen) == 2


def test_nothing_said_is_nothing_written(database: Database, pulses: Pulses) -> None:
    with statements(database) as seen:
        pulses.write()
    assert seen == []


@pytest.mark.parametrize(
    'news', [{'digest': 'another'}, {'boot_id': 'another'}, {'version': '2.0'}]
)
def test_news_go_to_the_database(
    told: Inventory, database: Database, news: dict[str, str]
) -> None:
    with statements(database) as seen:
        beat(told, replace(PULSE, **news))
    assert seen != []


def test_what_another_conductor_forgot_is_asked_for(
    told: Inventory, database: Database, pulses: Pulses
) -> None:
    database.write(services.forget_digest, HOST)
    make_old(database)
    beat(told)
    pulses.write()
    assert age(database) > timedelta(seconds=500)  # nothing true was said
    assert beat(told)


def test_a_host_that_does_not_tell_its_boot_lives_too(
    told: Inventory, database: Database, pulses: Pulses
) -> None:
    silent = replace(PULSE, boot_id='')
    assert not beat(told, silent)
    make_old(database)
    assert not beat(told, silent)
    pulses.write()
    assert age(database) < timedelta(seconds=100)


def test_when_the_database_is_away_the_next_one_hears_of_it(
    told: Inventory, database: Database, pulses: Pulses, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise CyborgError

    assert not beat(told)
    with monkeypatch.context() as patch:
        patch.setattr(database, 'write', away)
        with pytest.raises(CyborgError):
            pulses.write()
        with pytest.raises(CyborgError):
            beat(told)
    assert not beat(told)


def test_what_was_said_last_is_written_when_it_stops(
    told: Inventory, database: Database, pulses: Pulses
) -> None:
    make_old(database)
    stopping = threading.Event()
    stopping.set()
    last = Pulses(database, stopping)
    last.keep(PULSE)
    assert last.beat(PULSE)
    last.run()
    assert age(database) < timedelta(seconds=100)
