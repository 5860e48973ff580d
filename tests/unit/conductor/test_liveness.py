# SPDX-License-Identifier: Apache-2.0
"""Silent daemons are found, told of once, and only by who could have heard them."""

import logging
import threading

import pytest

from cyborg_lite.conductor.liveness import Liveness
from cyborg_lite.db import clock, providers
from cyborg_lite.db.engine import Database
from tests.fakes.daemons import fall_silent, service_states, speak
from tests.fakes.rows import HOST, add_card

PATIENCE = 100.0
LATER = 1000.0  # by the monotonic clock, which tests set as they like


class Conductor:
    """One that has listened long enough, unless it is told otherwise."""

    def __init__(self, database: Database) -> None:
        self.woken = 0
        self.stopping = threading.Event()
        self.hears = True
        self.liveness = Liveness(
            database, self._wake, PATIENCE, self.stopping, lambda: self.hears
        )

    def _wake(self) -> None:
        self.woken += 1

    def listen(self, until: float = LATER) -> 'Conductor':
        for moment in range(0, int(until) + 1, 50):
            self.liveness.look(float(moment))
        return self


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(one.levelno, one.getMessage()) for one in caplog.records]


def test_a_silent_agent_is_down_and_told_once_by_one(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = Conductor(database).listen(), Conductor(database).listen()
    fall_silent(database, HOST)
    with caplog.at_level(logging.INFO):
        for conductor in (one, other, one):
            conductor.liveness.look(LATER)
    assert service_states(database) == {HOST: 'down'}
    ((level, text),) = said(caplog)
    assert level == logging.WARNING
    assert f'cyborg-lite-agent on host {HOST} is down, silent since 2020-02-29' in text
    assert (one.woken, other.woken) == (1, 0)


def test_an_agent_that_is_back_is_up_and_told_once(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    conductor = Conductor(database).listen()
    fall_silent(database, HOST)
    conductor.liveness.look(LATER)
    speak(database, HOST)
    caplog.clear()
    with caplog.at_level(logging.INFO):
        conductor.liveness.look(LATER)
        conductor.liveness.look(LATER)
    assert service_states(database) == {HOST: 'up'}
    assert said(caplog) == [
        (logging.INFO, f'cyborg-lite-agent on host {HOST} is back.')
    ]
    assert conductor.woken == 2


def test_of_a_conductor_that_is_down_nothing_is_said_of_devices(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    conductor = Conductor(database).listen()
    fall_silent(database, 'ctl1', 'cyborg-lite-conductor')
    conductor.liveness.look(LATER)
    ((_level, text),) = said(caplog)
    assert 'cyborg-lite-conductor on host ctl1 is down' in text
    assert 'devices' not in text


def test_free_units_are_reserved_and_offered_again(database: Database) -> None:
    add_card(database, 4)
    conductor = Conductor(database).listen()
    reserved = []
    for change in (speak, fall_silent, speak):
        change(database, HOST)
        conductor.liveness.look(LATER)
        (row,) = database.read(providers.providers_of_host, HOST)
        reserved.append(row.reserved)
    assert reserved == [0, 4, 0]


def test_who_has_just_started_calls_nobody_silent(database: Database) -> None:
    """After a stop of all conductors every heartbeat is old."""
    fall_silent(database, HOST)
    conductor = Conductor(database)
    for moment in (5.0, 50.0, 104.0):
        conductor.liveness.look(moment)
    assert service_states(database) == {HOST: 'up'}
    conductor.liveness.look(105.0)
    assert service_states(database) == {HOST: 'down'}


def test_who_was_away_itself_listens_anew(database: Database) -> None:
    """A conductor that was stopped, or had no database, heard of nobody."""
    conductor = Conductor(database).listen(LATER)
    fall_silent(database, HOST)
    conductor.liveness.look(LATER + PATIENCE + 1)
    assert service_states(database) == {HOST: 'up'}
    conductor.liveness.look(LATER + PATIENCE + 51)
    conductor.liveness.look(LATER + PATIENCE + 101)
    assert service_states(database) == {HOST: 'down'}


def test_who_had_no_bus_listens_anew(database: Database) -> None:
    """It was there all the time, and looked; but nobody could have told it anything."""
    conductor = Conductor(database).listen(LATER)
    fall_silent(database, HOST)
    states = []
    for moment, hears in ((10, False), (60, True), (110, True), (160, True)):
        conductor.hears = hears
        conductor.liveness.look(LATER + moment)
        states.append(service_states(database)[HOST])
    assert states == ['up', 'up', 'up', 'down']


def test_when_the_clock_of_the_database_jumps_all_get_time_to_be_heard(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    speak(database, HOST)
    conductor = Conductor(database).listen(LATER)
    ago = clock.ago
    monkeypatch.setattr(
        clock, 'ago', lambda session, seconds: ago(session, seconds - 3600)
    )
    states = []
    for moment in (10, 60, 111):
        conductor.liveness.look(LATER + moment)
        states.append(service_states(database)[HOST])
    assert states == ['up', 'up', 'down']


def test_who_has_no_bus_still_sees_whom_others_hear(database: Database) -> None:
    fall_silent(database, HOST)
    conductor = Conductor(database).listen()
    speak(database, HOST)
    conductor.hears = False
    conductor.liveness.look(LATER)
    assert service_states(database) == {HOST: 'up'}


def test_who_is_back_is_seen_at_once(database: Database) -> None:
    fall_silent(database, HOST)
    Conductor(database).listen()
    speak(database, HOST)
    Conductor(database).liveness.look(5.0)
    assert service_states(database) == {HOST: 'up'}


class Tried(Liveness):
    """Tells when it has looked twice."""

    def __init__(self, database: Database, stopping: threading.Event) -> None:
        super().__init__(database, lambda: None, 0.01, stopping)
        self.looks = threading.Semaphore(0)

    def look(self, moment: float) -> None:
        self.looks.release()
        super().look(moment)


def test_the_loop_outlives_a_database_that_is_away_and_stops_at_once() -> None:
    stopping = threading.Event()
    liveness = Tried(Database('sqlite:////nowhere/at/all.sqlite'), stopping)
    loop = threading.Thread(target=liveness.run)
    loop.start()
    assert liveness.looks.acquire(timeout=10)
    assert liveness.looks.acquire(timeout=10)
    stopping.set()
    loop.join(10)
    assert not loop.is_alive()
