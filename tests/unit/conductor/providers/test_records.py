# SPDX-License-Identifier: Apache-2.0
"""Tests of the provider rows that a Placement sync reads and writes."""

import logging

import pytest

from cyborg_lite.conductor.providers.records import ProviderRecords
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.providers.providers import DesiredProvider, ProviderRow
from cyborg_lite.model.traits import OWNER_CYBORG
from tests.builders.provider_rows import add_device
from tests.support.sql_statements import statements, writes

HOST = 'compute-1'


@pytest.fixture
def rp_uuid(database: Database) -> str:
    return add_device(database, HOST, '0000:3b:00.0')


@pytest.fixture
def records(database: Database, rp_uuid: str) -> ProviderRecords:
    return ProviderRecords(database)


def read_row(records: ProviderRecords) -> ProviderRow:
    (row,) = records.list_rows(HOST)
    return row


def build_desired(
    rp_uuid: str, *traits: str, former: frozenset[str] = frozenset()
) -> DesiredProvider:
    return DesiredProvider(
        uuid=rp_uuid,
        name='compute-1_0000:3b:00.0',
        parent_uuid='root',
        inventories={},
        traits=frozenset({OWNER_CYBORG, *traits}),
        former_traits=former,
    )


def test_list_rows_returns_rows_of_host(records: ProviderRecords, rp_uuid: str) -> None:
    row = read_row(records)
    assert (row.rp_uuid, row.resource_class, row.total) == (rp_uuid, 'PGPU', 1)
    assert records.list_rows('other') == ()
    assert records.is_known_host(HOST)
    assert not records.is_known_host('other')


def test_record_new_traits_adds_to_recorded_traits(
    records: ProviderRecords, rp_uuid: str
) -> None:
    records.record_new_traits([read_row(records)], [build_desired(rp_uuid, 'CUSTOM_A')])
    records.record_new_traits([read_row(records)], [build_desired(rp_uuid, 'CUSTOM_B')])
    assert records.list_published_traits(rp_uuid) >= {'CUSTOM_A', 'CUSTOM_B'}
    assert OWNER_CYBORG not in set(read_row(records).published_traits or ())


def test_record_known_traits_writes_nothing(
    database: Database, records: ProviderRecords, rp_uuid: str
) -> None:
    desired = build_desired(rp_uuid, 'CUSTOM_A')
    records.record_new_traits([read_row(records)], [desired])
    row = read_row(records)
    with statements(database) as executed:
        records.record_new_traits([row], [desired])
    assert writes(executed) == []


def test_remove_old_traits_stores_current_traits_only(
    records: ProviderRecords, rp_uuid: str
) -> None:
    provider = build_desired(rp_uuid, 'CUSTOM_A', 'CUSTOM_B')
    records.record_new_traits([read_row(records)], [provider])
    current = build_desired(rp_uuid, 'CUSTOM_B', former=frozenset({'CUSTOM_A'}))
    records.remove_old_traits([current], [])
    assert set(read_row(records).published_traits or ()) == {'CUSTOM_B'}


def test_remove_old_traits_without_former_traits_writes_nothing(
    database: Database, records: ProviderRecords, rp_uuid: str
) -> None:
    with statements(database) as executed:
        records.remove_old_traits([build_desired(rp_uuid, 'CUSTOM_A')], [])
    assert executed == []


def test_record_conflicts_logs_changes_only(
    records: ProviderRecords, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    device_uuid = read_row(records).device_uuid
    for reasons in ({device_uuid: 'Nova has it.'}, {device_uuid: 'Nova has it.'}, {}):
        records.record_conflicts([read_row(records)], reasons)
        assert read_row(records).conflict == reasons.get(device_uuid, '')
    assert [record.levelname for record in caplog.records] == ['WARNING', 'INFO']


def test_rehearsal_writes_nothing(database: Database, rp_uuid: str) -> None:
    records = ProviderRecords(database, writable=False)
    row = read_row(records)
    former = build_desired(rp_uuid, 'CUSTOM_A', former=frozenset({'CUSTOM_B'}))
    with statements(database) as executed:
        records.record_new_traits([row], [former])
        records.remove_old_traits([former], [rp_uuid])
        records.record_conflicts([row], {row.device_uuid: 'Nova has it.'})
    assert executed == []
