# SPDX-License-Identifier: Apache-2.0
"""Lists of devices, and changes of their status."""

import json
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text, update

from cyborg_lite.db.arqs import arqs, binding, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Device
from cyborg_lite.db.core.tables import Device as Row
from cyborg_lite.db.devices import devices
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.attention import AttentionItem, AttentionKind
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.queries import Query
from tests.builders.bind_jobs import ANY_PROJECT, BIND_JOB, BOUND_EVENT_JOB
from tests.builders.reports import HOST, card, report
from tests.builders.rows import OWNER, add_arqs, add_card, bindings
from tests.support.sql_statements import statements

_FPGA = replace(card(2), type='FPGA', vendor='8086', health=Health.FAILED)


@pytest.fixture
def filled_database(database: Database) -> Database:
    """Return a database with a GPU and an FPGA."""
    bare = replace(_FPGA, std_board_info={}, vendor_board_info='board 7')
    database.write(reports.store_report, report(card(1), bare))
    return database


def _list_types(database: Database, **filters: tuple[str, ...]) -> list[str]:
    listed = database.read(devices.list_devices, Query(filters=filters))
    return [device.type for device in listed]


def test_list_devices_board_info_is_json_or_none(filled_database: Database) -> None:
    """Clients of version 2 parse the text."""
    gpu, fpga = filled_database.read(devices.list_devices, Query())
    assert json.loads(gpu.std_board_info or '') == {'product_id': '1eb8'}
    assert gpu.vendor_board_info is None
    assert fpga.std_board_info is None
    assert fpga.vendor_board_info == 'board 7'


def test_list_devices_board_info_has_one_format(filled_database: Database) -> None:
    """Databases and their other clients store the text in various formats."""
    statement = text('UPDATE devices SET std_board_info = \'{"id":"1eb8","ü":[1]}\'')
    filled_database.write(lambda session: session.execute(statement))
    gpu, fpga = filled_database.read(devices.list_devices, Query())
    assert gpu.std_board_info == fpga.std_board_info
    assert gpu.std_board_info == '{"id": "1eb8", "\\u00fc": [1]}'


def test_list_devices_costs_one_select(filled_database: Database) -> None:
    with statements(filled_database) as sql:
        _list_types(filled_database)
    assert len(sql) == 1


def test_list_devices_detailed_costs_two_selects(database: Database) -> None:
    uuids, card = add_arqs(database, 3), add_card(database, 3)
    add_card(database, 1)
    binding_by_arq = bindings(uuids[:2], card)
    job = database.write(
        binding.accept_bind, binding_by_arq, ANY_PROJECT, BIND_JOB, OWNER
    )
    database.write(binding.claim_for_bind, job, uuids[:2], None, BOUND_EVENT_JOB)
    with statements(database) as sql:
        used, free = database.read(devices.list_devices, Query(detailed=True))
    assert len(sql) == 2
    assert (sorted(used.arqs), free.arqs) == (sorted(uuids[:2]), ())
    without_details, _ = database.read(devices.list_devices, Query())
    assert without_details.arqs == ()


def test_list_devices_filters_by_health_conflict(filled_database: Database) -> None:
    filled_database.write(
        lambda session: session.execute(update(Row).values(conflict='nova'))
    )
    for device in filled_database.read(devices.list_devices, Query()):
        assert device.health is Health.CONFLICT
    assert len(_list_types(filled_database, health=('conflict',))) == 2
    assert _list_types(filled_database, health=('failed',)) == []


# --- ARQs and instances that use a device, and ARQs that have lost theirs -----------


@pytest.fixture
def arq(database: Database) -> str:
    """Bind an ARQ to a card, and leave another card free."""
    add_card(database, 1)
    uuids = add_arqs(database, 1)
    requested = bindings(uuids, add_card(database, 2))
    job = database.write(binding.accept_bind, requested, ANY_PROJECT, BIND_JOB, OWNER)
    database.write(binding.claim_for_bind, job, uuids, None, BOUND_EVENT_JOB)
    return uuids[0]


def change(database: Database, table: Any, **values: Any) -> None:
    statement = update(table).values(**values)
    database.write(lambda session: session.execute(statement))


def list_lost(database: Database) -> tuple[AttentionItem, ...]:
    return database.read(lambda session: tuple(devices.list_lost_arqs(session)))


@pytest.mark.parametrize(
    ('health', 'loss'),
    [
        (Health.GONE, 'The device is gone: moved away'),
        (Health.FAILED, 'The device is failed: moved away'),
        (Health.DEGRADED, ''),
    ],
)
def test_list_lost_arqs_by_health(
    database: Database, arq: str, health: Health, loss: str
) -> None:
    change(database, Device, health=health, health_reason='moved away')
    items = list_lost(database)
    assert [item.subject_id for item in items] == ([arq] if loss else [])
    assert all(item.reason.endswith(f': {loss}') for item in items)


def test_missing_handle_of_present_device_is_lost(database: Database, arq: str) -> None:
    change(database, AttachHandle, missing=True)
    (item,) = list_lost(database)
    (listed,) = database.read(arqs.list_arqs, Query(detailed=True), ANY_PROJECT)
    reason = 'The attach handle is missing on the host.'
    assert (listed.state, listed.status_reason) == (State.UNKNOWN, reason)
    assert item.reason.endswith(f': {reason}')
    assert item.subject_name == f'instance {listed.instance_uuid}'
    assert (item.kind, item.hostname) == (AttentionKind.LOST_ARQ, HOST)
    assert item.since is not None
    database.write(release.unbind_arqs, [arq], ANY_PROJECT, None)
    assert list_lost(database) == ()
