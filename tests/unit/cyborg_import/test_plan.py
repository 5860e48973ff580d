# SPDX-License-Identifier: Apache-2.0
"""Tests of the plan of an import: rows to insert, and rows that are refused."""

from datetime import UTC, datetime

from cyborg_lite.cyborg_import.plan import (
    ImportNote,
    ImportPlan,
    NoteKind,
    StoredRows,
    Table,
)
from cyborg_lite.model.profiles.device_profiles import DeviceProfile

PROFILE = DeviceProfile(
    'p', 'gpu', None, ({'resources:PGPU': '1'},), datetime(2026, 11, 22, tzinfo=UTC)
)


def test_plan_lists_uuids_of_all_tables_in_order() -> None:
    uuids = ImportPlan(profiles=(PROFILE,)).list_uuids()
    assert list(uuids) == list(Table)
    assert uuids[Table.PROFILES] == ['p']
    assert not any(uuids[table] for table in Table if table is not Table.PROFILES)


def test_plan_counts_refused_rows_only() -> None:
    notes = (
        ImportNote(NoteKind.REFUSED, Table.ARQS, 'a', ''),
        ImportNote(NoteKind.CHANGED, Table.ARQS, 'b', ''),
        ImportNote(NoteKind.REFUSED, Table.DEVICES, 'c', ''),
    )
    plan = ImportPlan(notes=notes)
    counts = {table: plan.count_refused(table) for table in Table}
    assert counts[Table.ARQS] == counts[Table.DEVICES] == 1
    assert sum(counts.values()) == 2


def test_stored_rows_of_other_table_do_not_match() -> None:
    stored = StoredRows({Table.ARQS: frozenset({'u'})})
    assert stored.has(Table.ARQS, 'u')
    assert not stored.has(Table.HANDLES, 'u')
