# SPDX-License-Identifier: Apache-2.0
"""What our own books say is left of each provider, and why some give nothing."""

from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from cyborg_lite.db import binding, services, supplies
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Device, Service
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.explanations import Why
from cyborg_lite.model.jobs import Kind, NewJob
from cyborg_lite.model.providers import OWNER
from tests.fakes.provider_rows import add_device, change_deployable
from tests.fakes.rows import HOST, add_arqs, add_card, bindings
from tests.fakes.rows import OWNER as CONDUCTOR
from tests.fakes.statements import statements


def change(database: Database, table: Any, **columns: Any) -> None:
    """Of all rows; Any: a class of ``tables`` and values of its columns."""

    def write(session: Session) -> None:
        session.execute(update(table).values(**columns))

    database.write(write)


def bind(database: Database, card: str, number: int) -> None:
    uuids = add_arqs(database, number)
    wanted, scope = bindings(uuids, card), Scope(project_id=None)
    job = database.write(binding.accept, wanted, scope, NewJob(Kind.BIND), CONDUCTOR)
    database.write(binding.claim, job, uuids, None, NewJob(Kind.NOVA_EVENT))


def test_what_requests_hold_is_not_free(database: Database) -> None:
    card = add_card(database, 4)
    bind(database, card, 3)
    (found,) = database.read(supplies.supplies)
    assert (found.rp_uuid, found.hostname) == (card, HOST)
    assert (found.total, found.free, found.free_handles) == (4, 1, 1)
    assert (found.closed, found.traits) == (None, frozenset({OWNER}))


def test_what_is_reserved_or_not_there_is_not_free(database: Database) -> None:
    card = add_card(database, 4)
    change_deployable(database, card, reserved=1, traits=['CUSTOM_t4'])
    add_card(database, 2, missing=True)
    first, second = database.read(supplies.supplies)
    by_uuid = {one.rp_uuid: one for one in (first, second)}
    assert by_uuid.pop(card).free == 3
    (gone,) = by_uuid.values()
    assert (gone.total, gone.free, gone.free_handles) == (2, 0, 0)
    assert 'CUSTOM_T4' in {*first.traits, *second.traits}


@pytest.mark.parametrize(
    ('columns', 'why', 'word'),
    [
        ({'status': 'maintaining', 'status_reason': 'a fan'}, Why.MAINTENANCE, 'a fan'),
        ({'conflict': 'OWNER_NOVA'}, Why.MANAGED_ELSEWHERE, 'OWNER_NOVA'),
        ({'health': 'conflict'}, Why.MANAGED_ELSEWHERE, 'Another service'),
        ({'health': 'failed', 'health_reason': 'ECC.'}, Why.UNHEALTHY, 'ECC.'),
        ({'health': 'gone'}, Why.UNHEALTHY, 'gone'),
    ],
)
def test_a_device_that_gives_nothing_says_why(
    database: Database, columns: dict[str, str], why: Why, word: str
) -> None:
    add_card(database, 1)
    change(database, Device, **columns)
    (found,) = database.read(supplies.supplies)
    assert found.closed is why
    assert word in found.closed_text
    assert '..' not in found.closed_text


def test_a_device_of_a_silent_host_gives_nothing(database: Database) -> None:
    add_card(database, 1)
    database.write(services.beat, services.AGENT, HOST, '1.0')
    assert database.read(supplies.supplies)[0].closed is None
    change(database, Service, state='down')
    assert database.read(supplies.supplies)[0].closed is Why.HOST_SILENT


def test_hosts_without_devices_count_as_hosts(database: Database) -> None:
    add_card(database, 1)
    database.write(services.beat, services.AGENT, 'compute-0', '1.0')
    database.write(services.beat, services.CONDUCTOR, 'controller', '1.0')
    assert database.read(supplies.hosts) == {HOST, 'compute-0'}


def test_a_whole_cloud_is_one_statement(database: Database) -> None:
    for number in range(50):
        add_device(database, f'compute-{number}', 'gpu')
    with statements(database) as sent:
        assert len(database.read(supplies.supplies)) == 50
    assert len(sent) == 1
