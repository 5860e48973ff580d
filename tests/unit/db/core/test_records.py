# SPDX-License-Identifier: Apache-2.0
"""Data classes that are read from columns."""

from dataclasses import dataclass

from sqlalchemy import select

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.records import From, Record
from cyborg_lite.db.core.tables import Deployable, Device
from cyborg_lite.model.inventory.host_report import Health
from tests.builders.rows import add_card
from tests.builders.table_rows import change_rows, read_column


@dataclass(frozen=True, slots=True)
class Card:
    """A device and its deployable."""

    uuid: str
    health: Health
    traits: tuple[str, ...]
    title: str
    number: int
    is_shown: bool = True


TITLE = From('{} of {}'.format, Device.model, Device.vendor)
CARD = Record(Card, Device, Deployable, title=TITLE)


def test_read_converts_each_field_to_its_type(database: Database) -> None:
    add_card(database, 1)
    change_rows(database, Device, health='failed')
    (uuid,) = read_column(database, select(Device.uuid))
    statement = CARD.select().join(Deployable, Deployable.device_id == Device.id)
    row = database.read(lambda session: session.execute(statement).one())
    card = CARD.read(row, number=7)
    assert card == Card(uuid, Health.FAILED, card.traits, 'T4 of 10de', 7)
    assert card.health is Health.FAILED
    assert isinstance(card.traits, tuple)
