# SPDX-License-Identifier: Apache-2.0
"""What agents tell: stored once, and whatever repeats costs no write."""

import threading
from dataclasses import replace

import pytest

from cyborg_lite.conductor.inventory import Inventory
from cyborg_lite.conductor.pulses import Pulses
from cyborg_lite.db import devices, inventory, jobs, services
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.jobs import Job, Kind, Owner
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import of_daemon
from tests.fakes.cards import HOST, card, host, report
from tests.fakes.statements import statements, transactions, writes


class Bell:
    def __init__(self) -> None:
        self.rung = 0

    def __call__(self) -> None:
        self.rung += 1


@pytest.fixture
def bell() -> Bell:
    return Bell()


@pytest.fixture
def told(database: Database, bell: Bell) -> Inventory:
    return Inventory(database, bell, Pulses(database, threading.Event()))


def _job(database: Database) -> Job:
    [job] = database.write(jobs.take, Owner('me', 1000), 10)
    return job


def test_a_report_is_stored_and_placement_follows(
    told: Inventory, database: Database, bell: Bell
) -> None:
    context = of_daemon()
    told.report(context, host(2, 4))
    assert len(database.read(devices.listed, Query())) == 2
    assert bell.rung == 1
    job = _job(database)
    assert (job.kind, job.payload) == (Kind.PLACEMENT_SYNC, {'host': HOST})
    # So that one id is followed through the logs of all daemons.
    assert job.request_id == context.request_id


def test_an_identical_report_costs_one_read_and_nothing_else(
    told: Inventory, database: Database, bell: Bell
) -> None:
    told.report(of_daemon(), host(64, 16))
    with statements(database) as seen, transactions(database) as ends:
        told.report(of_daemon(), host(64, 16))
    assert len(seen) == 1
    assert writes(seen) == []
    assert ends == ['rollback']
    assert bell.rung == 1


def test_a_report_is_stored_in_one_transaction(
    told: Inventory, database: Database
) -> None:
    with transactions(database) as ends:
        told.report(of_daemon(), host(64, 16))
    assert ends == ['rollback', 'commit']


def test_nobody_is_woken_for_what_placement_does_not_show(
    told: Inventory, bell: Bell
) -> None:
    told.report(of_daemon(), report(card(1, serial='s')))
    told.report(of_daemon(), report(replace(card(1, serial='s'), model='A2')))
    assert bell.rung == 1


def test_nonsense_changes_nothing(
    told: Inventory, database: Database, bell: Bell
) -> None:
    told.report(of_daemon(), report(card(1)))
    with pytest.raises(InvalidInput), statements(database) as seen:
        told.report(of_daemon(), report(card(1), card(1)))
    assert seen == []
    assert bell.rung == 1


def test_a_heartbeat_asks_for_the_report_until_it_was_stored(told: Inventory) -> None:
    reported = report(card(1))
    assert told.heartbeat(HOST, reported.digest, '1.0')
    assert told.heartbeat(HOST, reported.digest, '1.0')
    told.report(of_daemon(), reported)
    assert not told.heartbeat(HOST, reported.digest, '1.0')
    assert told.heartbeat(HOST, report(card(2)).digest, '1.0')


def test_a_heartbeat_that_brings_no_news_is_one_statement(
    told: Inventory, database: Database
) -> None:
    reported = host(64, 16)
    told.report(of_daemon(), reported)
    with statements(database) as seen:
        told.heartbeat(HOST, reported.digest, '1.0')
    assert len(seen) == 1


def test_a_heartbeat_of_a_new_host_makes_it_known(
    told: Inventory, database: Database
) -> None:
    told.heartbeat('compute-9', 'digest', '1.0')
    [found] = database.read(services.listed)
    assert (found.host, found.version, found.digest) == ('compute-9', '1.0', None)


def test_the_version_is_that_of_the_last_heartbeat(
    told: Inventory, database: Database
) -> None:
    """A report does not say it, and must not undo it."""
    told.heartbeat(HOST, 'digest', '1.1')
    told.report(of_daemon(), report(card(1)))
    [found] = database.read(services.listed)
    assert (found.version, found.boot_id) == ('1.1', 'boot')
    assert found.digest == report(card(1)).digest


def test_after_something_was_forgotten_the_report_is_wanted_again(
    told: Inventory, database: Database
) -> None:
    reported = report(card(1))
    told.report(of_daemon(), reported)
    database.write(services.forget_digest, HOST)
    assert told.heartbeat(HOST, reported.digest, '1.0')
    told.report(of_daemon(), reported)
    assert not told.heartbeat(HOST, reported.digest, '1.0')


def test_a_report_that_cannot_be_stored_is_asked_for_again(
    told: Inventory, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest is kept in the transaction that keeps the rows."""

    def fail(*_: object) -> None:
        raise InvalidInput(reason='no')

    monkeypatch.setattr(inventory, 'write', fail)
    with pytest.raises(InvalidInput):
        told.report(of_daemon(), report(card(1)))
    assert told.heartbeat(HOST, report(card(1)).digest, '1.0')
