# SPDX-License-Identifier: Apache-2.0
"""Data classes that are read from columns, and written to them."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select, update

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.records import From, Record
from cyborg_lite.db.core.tables import Deployable, Device
from cyborg_lite.model.inventory.host_report import Health
from tests.builders.rows import add_card

AT = datetime(2026, 3, 1, 12, 30, 0, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Card:
    """A device with columns of all types, and its deployable."""

    uuid: str
    address: str
    health: Health
    std_board_info: dict[str, Any] | None
    health_since: datetime
    telemetry_at: datetime | None
    name: str
    traits: tuple[str, ...]
    title: str
    number: int
    is_shown: bool = True


CARD = Record(
    Card,
    Device,
    Deployable,
    address=Device.control_address,
    title=From('{} of {}'.format, Device.model, Device.vendor),
)


def read_card(database: Database, number: int = 7) -> Card:
    """Return the only card."""
    statement = CARD.select().join(Deployable, Deployable.device_id == Device.id)
    return database.read(
        lambda session: CARD.read(session.execute(statement).one(), number=number)
    )


@pytest.fixture
def card_database(database: Database) -> Database:
    """Return a database with one card."""
    add_card(database, 1)
    values = {'model': 'T4', 'vendor': '10de', 'health': 'failed', 'health_since': AT}
    statement = update(Device).values(**values, telemetry_at=None)
    database.write(lambda session: session.execute(statement) and None)
    return database


def test_read_converts_each_field_to_its_type(card_database: Database) -> None:
    card = read_card(card_database)
    assert card.health is Health.FAILED
    assert isinstance(card.traits, tuple)
    assert (card.health_since, card.telemetry_at) == (AT, None)


def test_read_takes_computed_given_and_default_fields(card_database: Database) -> None:
    card = read_card(card_database)
    assert (card.title, card.number, card.is_shown) == ('T4 of 10de', 7, True)


def test_read_same_name_belongs_to_first_table(card_database: Database) -> None:
    uuids = card_database.read(
        lambda session: session.scalars(select(Device.uuid)).all()
    )
    assert [read_card(card_database).uuid] == uuids


def test_read_unknown_value_raises(card_database: Database) -> None:
    statement = update(Device).values(health='odd')
    card_database.write(lambda session: session.execute(statement) and None)
    with pytest.raises(ValueError, match='odd'):
        read_card(card_database)


def test_write_returns_chosen_fields(card_database: Database) -> None:
    card = read_card(card_database)
    assert CARD.write(card, ['health']) == {'health': card.health}
