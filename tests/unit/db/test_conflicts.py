# SPDX-License-Identifier: Apache-2.0
"""Which devices are managed twice, and which functions belong to a device."""

from cyborg_lite.db import conflicts, devices, inventory
from cyborg_lite.db.conflicts import Contested
from cyborg_lite.db.engine import Database
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.queries import Query
from tests.fakes.cards import HOST, card, report
from tests.fakes.provider_rows import add_device, change_device


def _uuids(database: Database) -> dict[str, str]:
    """By model and host."""
    found = database.read(devices.listed, Query())
    return {one.hostname: one.uuid for one in found}


def test_a_device_is_its_own_function_and_those_of_its_units(
    database: Database,
) -> None:
    database.write(inventory.store, report(card(0x3B, units=2)))
    add_device(database, 'other', 'x')
    (found,) = database.read(conflicts.addresses, HOST).values()
    assert found == {'0000:3b:00.0', '0000:3b:00.1'}


def test_a_mark_is_seen_as_the_health_of_the_device_until_it_goes(
    database: Database,
) -> None:
    rp_uuid = add_device(database, HOST, 'a')
    change_device(database, rp_uuid, health='degraded', health_reason='hot')
    uuid = _uuids(database)[HOST]
    for reason, seen in (
        ('nova', (Health.CONFLICT, 'nova')),
        ('', ('degraded', 'hot')),
    ):
        database.write(conflicts.mark, {uuid: reason})
        (found,) = database.read(devices.listed, Query())
        assert (found.health, found.health_reason) == seen


def test_a_mark_outlives_the_next_report(database: Database) -> None:
    database.write(inventory.store, report(card(0x3B)))
    database.write(conflicts.mark, {_uuids(database)[HOST]: 'nova'})
    database.write(inventory.store, report(card(0x3B), card(0x5E)))
    assert database.read(conflicts.listed) == (Contested(HOST, '0000:3b:00.0', 'nova'),)


def test_conflicts_are_listed_whoever_found_them(database: Database) -> None:
    here = add_device(database, 'host-b', 'x')
    there = add_device(database, 'host-a', 'y')
    add_device(database, 'host-c', 'z')
    change_device(database, here, conflict='in Placement')
    change_device(database, there, health='conflict', health_reason='in nova.conf')
    assert [(one.hostname, one.reason) for one in database.read(conflicts.listed)] == [
        ('host-a', 'in nova.conf'),
        ('host-b', 'in Placement'),
    ]


def test_nothing_to_mark_is_no_statement(database: Database) -> None:
    database.write(conflicts.mark, {})
