# SPDX-License-Identifier: Apache-2.0
"""A heartbeat costs one statement, and one more where figures have changed."""

from dataclasses import replace

from cyborg_lite.db import devices, heartbeats, inventory
from cyborg_lite.db.engine import Database
from cyborg_lite.model.devices import DeviceRecord
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.queries import Query
from cyborg_lite.model.services import Vitals
from cyborg_lite.model.usage import Usage
from tests.fakes.cards import HOST, host
from tests.fakes.statements import statements

FIGURES = Usage(
    busy_percent=35.0, memory_used=2**34, temperature=60.0, counters={'fatal': 0}
)


def beat(database: Database, figures: dict[str, Usage]) -> bool:
    digest = host(64, 2).digest
    vitals = Vitals('boot', figures)
    return database.write(heartbeats.hear, HOST, '1.0', digest, vitals)


def listed(database: Database) -> dict[str, DeviceRecord]:
    """By the address of a card, as the order of creation has it."""
    found = database.read(devices.listed, Query())
    return {f'0000:{number:02x}:00.0': one for number, one in enumerate(found)}


def test_without_news_it_is_one_statement(database: Database) -> None:
    database.write(inventory.store, host(64, 2))
    with statements(database) as seen:
        assert not beat(database, {})
    assert len(seen) == 1


def test_figures_of_all_devices_are_one_more(database: Database) -> None:
    database.write(inventory.store, host(64, 2))
    figures = {f'0000:{bus:02x}:00.0': FIGURES for bus in range(64)}
    with statements(database) as seen:
        assert not beat(database, figures)
    assert len(seen) == 2
    assert all(record.usage == FIGURES for record in listed(database).values())


def test_figures_are_kept_until_they_change(database: Database) -> None:
    database.write(inventory.store, host(2, 1))
    assert [one.usage for one in listed(database).values()] == [None, None]
    beat(database, {'0000:00:00.0': FIGURES})
    hotter = replace(FIGURES, temperature=90.0, health=Health.DEGRADED, reason='hot')
    beat(database, {'0000:01:00.0': hotter})
    assert [one.usage for one in listed(database).values()] == [FIGURES, hotter]


def test_figures_do_not_make_a_device_newer(database: Database) -> None:
    database.write(inventory.store, host(1, 1))
    beat(database, {'0000:00:00.0': FIGURES})
    (record,) = listed(database).values()
    assert record.updated_at is None


def test_figures_of_what_the_host_does_not_have_are_dropped(
    database: Database,
) -> None:
    database.write(inventory.store, host(1, 1))
    assert beat(database, {'0000:99:00.0': FIGURES})
    assert [one.usage for one in listed(database).values()] == [None]
