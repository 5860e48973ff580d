# SPDX-License-Identifier: Apache-2.0
"""Numbers of units, ARQs and daemons."""

from sqlalchemy import update

from cyborg_lite.db.capacity import unit_counts
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Deployable
from tests.builders.rows import add_arqs, add_card


def test_count_units_unreadable_traits_are_empty(database: Database) -> None:
    add_card(database, 1)
    database.write(lambda session: session.execute(update(Deployable).values(traits=7)))
    (units,) = database.read(unit_counts.count_units)
    assert units.traits == ()


def test_count_arqs_by_state(database: Database) -> None:
    assert database.read(unit_counts.count_arqs) == {}
    add_arqs(database, 3)
    assert database.read(unit_counts.count_arqs) == {'Initial': 3}
