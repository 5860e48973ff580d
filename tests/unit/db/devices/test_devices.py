# SPDX-License-Identifier: Apache-2.0
"""Lists of devices, and changes of their status."""

import json
from dataclasses import replace

import pytest
from sqlalchemy import text

from cyborg_lite.db.arqs import arqs, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Device
from cyborg_lite.db.devices import devices
from cyborg_lite.db.inventory import reports
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.attention import AttentionItem, AttentionKind
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.queries import Query
from tests.builders.bind_jobs import ANY_PROJECT
from tests.builders.bound_arqs import create_bound_arqs
from tests.builders.reports import HOST, card, report
from tests.builders.rows import add_card
from tests.builders.table_rows import change_rows, execute
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
    execute(filled_database, statement)
    gpu, fpga = filled_database.read(devices.list_devices, Query())
    assert gpu.std_board_info == fpga.std_board_info
    assert gpu.std_board_info == '{"id": "1eb8", "\\u00fc": [1]}'


def test_list_devices_costs_one_select(filled_database: Database) -> None:
    with statements(filled_database) as sql:
        _list_types(filled_database)
    assert len(sql) == 1


def test_list_devices_detailed_costs_two_selects(database: Database) -> None:
    uuids = create_bound_arqs(database, 2, needs_host=False)
    add_card(database, 1)
    with statements(database) as sql:
        used, free = database.read(devices.list_devices, Query(detailed=True))
    assert len(sql) == 2
    assert (sorted(used.arqs), free.arqs) == (sorted(uuids), ())
    without_details, _ = database.read(devices.list_devices, Query())
    assert without_details.arqs == ()


def test_list_devices_filters_by_health_conflict(filled_database: Database) -> None:
    change_rows(filled_database, Device, conflict='nova')
    for device in filled_database.read(devices.list_devices, Query()):
        assert device.health is Health.CONFLICT
    assert len(_list_types(filled_database, health=('conflict',))) == 2
    assert _list_types(filled_database, health=('failed',)) == []


# --- ARQs and instances that use a device, and ARQs that have lost theirs -----------


@pytest.fixture
def arq(database: Database) -> str:
    """Bind an ARQ to a card, and leave another card free."""
    add_card(database, 1)
    return create_bound_arqs(database, 1, needs_host=False)[0]


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
    change_rows(database, Device, health=health, health_reason='moved away')
    items = list_lost(database)
    assert [item.subject_id for item in items] == ([arq] if loss else [])
    assert all(item.reason.endswith(f': {loss}') for item in items)


def test_missing_handle_of_present_device_is_lost(database: Database, arq: str) -> None:
    change_rows(database, AttachHandle, missing=True)
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
