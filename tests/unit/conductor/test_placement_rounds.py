# SPDX-License-Identifier: Apache-2.0
"""The loop calls for hosts, wakes who runs jobs, and ends when it is told to."""

import threading

from cyborg_lite.conductor.placement_rounds import PlacementRounds
from cyborg_lite.db import jobs
from cyborg_lite.db.engine import Database
from tests.fakes.databases import database_fixture
from tests.fakes.provider_rows import add_device, change_device
from tests.unit.db.test_placement_rounds import HOUR, fleet

database = database_fixture('sqlite')


def look(database: Database, interval: float) -> tuple[int, int]:
    """How many jobs there are then, and how often it woke somebody."""
    woken: list[bool] = []
    stopping = threading.Event()
    rounds = PlacementRounds(database, lambda: woken.append(True), interval, stopping)
    rounds.look()
    stopping.set()
    rounds.run()
    waiting = sum(each.count for each in database.read(jobs.count))
    return waiting, len(woken)


def test_a_look_calls_for_those_whose_turn_it_is(database: Database) -> None:
    assert look(database, HOUR) == (0, 0)
    fleet(database, 60)
    assert look(database, HOUR) == (1, 1)


def test_without_an_interval_only_the_contested_have_a_turn(
    database: Database,
) -> None:
    fleet(database, 60)
    assert look(database, 0) == (0, 0)
    change_device(database, add_device(database, 'host', 'x'), conflict='nova')
    assert look(database, 0) == (1, 1)
