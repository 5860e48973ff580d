# SPDX-License-Identifier: Apache-2.0
"""Daemons without heartbeats are marked down once, and not after an outage."""

import logging
import threading
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import insert, select, update

from cyborg_lite.conductor.hosts.liveness import LivenessMonitor
from cyborg_lite.db.core import clock
from cyborg_lite.db.core.clock import now_utc
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Job, Service
from cyborg_lite.db.hosts import services
from cyborg_lite.db.providers import providers
from cyborg_lite.model.hosts.services import AGENT, HeartbeatDetails
from tests.builders.rows import HOST, add_card
from tests.builders.service_rows import (
    LONG_AGO,
    expire_heartbeat,
    record_heartbeat,
    service_states,
)
from tests.support.sql_statements import statements
from tests.support.wall_clock import STEPS, step_wall_clock

DOWN_AFTER = 100.0
LATER = 1000.0  # by the monotonic clock, which tests set as they like


class Conductor:
    """Conductor with a liveness monitor."""

    def __init__(self, database: Database) -> None:
        self.woken = 0
        self.stopping = threading.Event()
        self.bus_works = True
        self.liveness = LivenessMonitor(
            database, self._wake, DOWN_AFTER, self.stopping, lambda: self.bus_works
        )

    def _wake(self) -> None:
        self.woken += 1

    def listen(self, until: float = LATER) -> 'Conductor':
        for moment in range(0, int(until) + 1, 50):
            self.liveness.check_services(float(moment))
        return self


def log_messages(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(record.levelno, record.getMessage()) for record in caplog.records]


def test_liveness_stale_agent_is_logged_once(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Conductor(database).listen(), Conductor(database).listen()
    expire_heartbeat(database, HOST)
    with caplog.at_level(logging.INFO):
        for conductor in (first, second, first):
            conductor.liveness.check_services(LATER)
    assert service_states(database) == {HOST: 'down'}
    ((level, text),) = log_messages(caplog)
    assert level == logging.WARNING
    assert (
        f'cyborg-lite-agent on host {HOST} is down: last heartbeat at 2020-02-29'
        in text
    )
    assert first.woken + second.woken == 1


def test_liveness_resumed_agent_is_logged_once(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    conductor = Conductor(database).listen()
    expire_heartbeat(database, HOST)
    conductor.liveness.check_services(LATER)
    record_heartbeat(database, HOST)
    caplog.clear()
    with caplog.at_level(logging.INFO):
        conductor.liveness.check_services(LATER)
        conductor.liveness.check_services(LATER)
    assert service_states(database) == {HOST: 'up'}
    assert log_messages(caplog) == [
        (
            logging.INFO,
            f'cyborg-lite-agent on host {HOST} is up: heartbeats have resumed',
        )
    ]
    assert conductor.woken == 2


def test_liveness_agent_down_reserves_free_handles(database: Database) -> None:
    add_card(database, 4)
    conductor = Conductor(database).listen()
    reserved = []
    for change in (record_heartbeat, expire_heartbeat, record_heartbeat):
        change(database, HOST)
        conductor.liveness.check_services(LATER)
        (row,) = database.read(providers.list_providers_of_host, HOST)
        reserved.append(row.reserved)
    assert reserved == [0, 4, 0]


def test_liveness_stopped_agent_is_down_after_timeout(database: Database) -> None:
    add_card(database, 4)
    conductor = Conductor(database).listen()
    details = HeartbeatDetails(identity='me')
    database.write(services.record_agent_heartbeat, HOST, '1', '', details)
    database.write(services.record_stop, HOST, 'me')
    conductor.liveness.check_services(LATER)
    assert (service_states(database), conductor.woken) == ({HOST: 'stopped'}, 0)
    expire_heartbeat(database, HOST)
    conductor.liveness.check_services(LATER)
    assert (service_states(database), conductor.woken) == ({HOST: 'down'}, 1)


def test_liveness_after_pause_waits_before_marking_down(database: Database) -> None:
    """The process was paused, or had no database."""
    conductor = Conductor(database).listen(LATER)
    expire_heartbeat(database, HOST)
    conductor.liveness.check_services(LATER + DOWN_AFTER + 1)
    assert service_states(database) == {HOST: 'up'}
    conductor.liveness.check_services(LATER + DOWN_AFTER + 51)
    conductor.liveness.check_services(LATER + DOWN_AFTER + 101)
    assert service_states(database) == {HOST: 'down'}


def test_liveness_after_bus_outage_waits_before_marking_down(
    database: Database,
) -> None:
    """The process checked the services, but no heartbeat could arrive."""
    conductor = Conductor(database).listen(LATER)
    expire_heartbeat(database, HOST)
    states = []
    for moment, bus_works in ((10, False), (60, True), (110, True), (160, True)):
        conductor.bus_works = bus_works
        conductor.liveness.check_services(LATER + moment)
        states.append(service_states(database)[HOST])
    assert states == ['up', 'up', 'up', 'down']


def test_liveness_database_clock_jump_waits_before_marking_down(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_heartbeat(database, HOST)
    conductor = Conductor(database).listen(LATER)
    ago = clock.read_time_before
    monkeypatch.setattr(
        clock, 'read_time_before', lambda session, seconds: ago(session, seconds - 3600)
    )
    states = []
    for moment in (10, 60, 111):
        conductor.liveness.check_services(LATER + moment)
        states.append(service_states(database)[HOST])
    assert states == ['up', 'up', 'down']


def test_liveness_ends_heartbeats_from_before_a_clock_step(database: Database) -> None:
    """Agents that died before the clock was set back would count as up until then."""
    record_heartbeat(database, HOST)
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    later = update(Service).values(heartbeat_at=in_an_hour)
    database.write(lambda session: session.execute(later))
    Conductor(database).liveness.check_services(0.0)
    is_later = select(Service.id).where(Service.heartbeat_at > now_utc())
    assert database.read(lambda session: session.scalars(is_later).all()) == []


def test_liveness_after_start_marks_resumed_agent_up(database: Database) -> None:
    expire_heartbeat(database, HOST)
    Conductor(database).listen()
    record_heartbeat(database, HOST)
    Conductor(database).liveness.check_services(5.0)
    assert service_states(database) == {HOST: 'up'}


def add_agents(database: Database, number: int) -> None:
    rows = [
        {
            'uuid': str(uuid4()),
            'binary': AGENT,
            'host': f'compute-{index:04d}',
            'version': '1',
            'heartbeat_at': LONG_AGO,
        }
        for index in range(number)
    ]
    database.write(lambda session: session.execute(insert(Service), rows))


def read_delays(database: Database) -> list[int]:
    """Return the milliseconds until each job may start, relative to the first."""
    times = database.read(
        lambda session: session.scalars(select(Job.run_after).order_by(Job.id)).all()
    )
    return [time - times[0] for time in times]


def test_liveness_marks_1000_agents_in_few_statements(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    add_agents(database, 1000)
    conductor = Conductor(database).listen(50)
    with statements(database) as sql, caplog.at_level(logging.INFO):
        conductor.liveness.check_services(LATER)
        conductor.liveness.check_services(LATER + DOWN_AFTER)
    assert set(service_states(database).values()) == {'down'}
    assert len(sql) <= 12  # two checks with two SELECTs, two batches with four
    assert [text[:22] for _, text in log_messages(caplog)] == [
        '500 daemons are down, ',
        '500 daemons are down, ',
    ]
    # 20 Placement syncs start in each second, across both batches.
    delays = read_delays(database)
    assert delays == sorted(delays)
    assert delays[20] - delays[19] >= 1000
    assert delays[499] >= 24_000
    assert delays[999] >= 49_000
    assert (len(delays), conductor.woken) == (1000, 2)


def test_liveness_marks_returned_agents_in_few_statements(database: Database) -> None:
    add_agents(database, 1000)
    conductor = Conductor(database).listen()
    database.write(
        lambda session: session.execute(update(Service).values(heartbeat_at=now_utc()))
    )
    with statements(database) as sql:
        conductor.liveness.check_services(LATER + 1)
    assert set(service_states(database).values()) == {'up'}
    assert len(sql) <= 10
    # Each job waits since the silence, or runs once more.
    assert len(read_delays(database)) == 1000


class CountingMonitor(LivenessMonitor):
    """Monitor that counts its checks."""

    def __init__(self, database: Database, stopping: threading.Event) -> None:
        super().__init__(database, lambda: None, 0.01, stopping)
        self.checks = threading.Semaphore(0)

    def check_services(self, moment: float) -> None:
        self.checks.release()
        super().check_services(moment)


def test_liveness_database_down_continues_until_stop() -> None:
    stopping = threading.Event()
    liveness = CountingMonitor(Database('sqlite:////nowhere/at/all.sqlite'), stopping)
    loop = threading.Thread(target=liveness.run)
    loop.start()
    assert liveness.checks.acquire(timeout=10)
    assert liveness.checks.acquire(timeout=10)
    stopping.set()
    loop.join(10)
    assert not loop.is_alive()


@pytest.mark.parametrize('step', STEPS)
def test_liveness_wall_clock_step_changes_no_state(
    database: Database, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    conductor = Conductor(database).listen()
    record_heartbeat(database, HOST)
    step_wall_clock(monkeypatch, step)
    record_heartbeat(database, 'compute-2')
    conductor.liveness.check_services(LATER + 1)
    assert service_states(database) == {HOST: 'up', 'compute-2': 'up'}
    expire_heartbeat(database, HOST)
    conductor.liveness.check_services(LATER + 2)
    assert service_states(database) == {HOST: 'down', 'compute-2': 'up'}
