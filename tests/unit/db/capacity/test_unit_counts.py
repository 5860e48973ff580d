# SPDX-License-Identifier: Apache-2.0
"""Numbers of units, ARQs and daemons."""

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.capacity import unit_counts
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Deployable, Service
from cyborg_lite.model.hosts.topology import Availability
from tests.builders.rows import add_arqs, add_card
from tests.support.sql_statements import statements


def test_count_units_has_deployables_with_class(database: Database) -> None:
    first, second = add_card(database, 3), add_card(database, 2, missing=True)
    add_card(database, 1)
    values = {'traits': ['CUSTOM_A'], 'reserved': 1}

    def change(session: Session) -> None:
        session.execute(update(Deployable).values(resource_class=None))
        for provider in (first, second):
            statement = update(Deployable).where(Deployable.rp_uuid == provider)
            session.execute(statement.values(resource_class='PGPU', **values))

    database.write(change)
    with statements(database) as sql:
        good, bad = sorted(
            database.read(unit_counts.count_units),
            key=lambda item: Availability.BROKEN in item.counts,
        )
    assert len(sql) == 2
    assert (good.resource_class, good.traits) == ('PGPU', ('CUSTOM_A',))
    assert good.counts == {Availability.FREE: 3}
    assert (good.count(Availability.FREE), good.count(Availability.RESERVED)) == (2, 1)
    assert bad.counts == {Availability.BROKEN: 2}


def test_count_units_unreadable_traits_are_empty(database: Database) -> None:
    add_card(database, 1)
    database.write(lambda session: session.execute(update(Deployable).values(traits=7)))
    (units,) = database.read(unit_counts.count_units)
    assert units.traits == ()


def test_count_arqs_by_state(database: Database) -> None:
    assert database.read(unit_counts.count_arqs) == {}
    add_arqs(database, 3)
    assert database.read(unit_counts.count_arqs) == {'Initial': 3}


def test_count_services_by_binary_and_state(database: Database) -> None:
    def add(session: Session) -> None:
        for host, state in (('a', 'up'), ('b', 'up'), ('c', 'down')):
            values = {'uuid': f'u{host}', 'host': host, 'version': '1', 'state': state}
            session.execute(
                insert(Service).values(binary='cyborg-lite-agent', **values)
            )
        assert session.scalars(select(Service.id)).all()

    database.write(add)
    assert database.read(unit_counts.count_services) == {
        ('cyborg-lite-agent', 'up'): 2,
        ('cyborg-lite-agent', 'down'): 1,
    }
