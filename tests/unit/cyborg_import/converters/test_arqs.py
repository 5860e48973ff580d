# SPDX-License-Identifier: Apache-2.0
"""Tests of imported ARQs: owners of handles, slots, and ARQs that are refused."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from cyborg_lite.cyborg_import.converters.arqs import ArqSources, convert_arqs
from cyborg_lite.cyborg_import.notes import Notes
from cyborg_lite.cyborg_import.plan import CloudRows, NewArq, StoredRows, Table
from cyborg_lite.cyborg_import.source_rows import SourceArq, SourceDatabase
from cyborg_lite.model.profiles.device_profiles import DeviceProfile

NOW = datetime(2026, 11, 22, tzinfo=UTC)
PROFILE = DeviceProfile('p', 'gpu', None, ({'resources:PGPU': '2'},), NOW)
BOUND = SourceArq(1, 'a1', 'lab', 'Bound', 1, 'compute-1', 'rp', 1, 0, 'i', NOW)
CLOUD = CloudRows(frozenset(), frozenset(), {'i': frozenset({'rp'})}, frozenset())


def convert(
    *rows: SourceArq, stored: StoredRows | None = None, cloud: CloudRows = CLOUD
) -> tuple[list[NewArq], dict[str, str], list[str]]:
    """Return ARQs, owners of handles, and the reasons of the notes."""
    sources = ArqSources(
        {1: PROFILE}, {1: 'h1', 2: 'h2'}, stored or StoredRows(), cloud
    )
    notes = Notes(NOW)
    arqs, owners = convert_arqs(SourceDatabase('x', arqs=rows), sources, notes)
    return arqs, owners, [note.reason for note in notes.items]


def test_bound_arqs_own_handles_and_slots_of_instance() -> None:
    second = replace(BOUND, id=2, uuid='a2', attach_handle_id=2)
    arqs, owners, reasons = convert(BOUND, second)
    assert owners == {'h1': 'a1', 'h2': 'a2'}
    assert [arq.instance_slot for arq in arqs] == [0, 1]
    assert {arq.group['resources:PGPU'] for arq in arqs} == {'2'}
    assert not reasons


@pytest.mark.parametrize('state', ['Initial', 'Unbound'])
def test_arq_without_instance_loses_binding(state: str) -> None:
    ((arq,), owners, reasons) = convert(replace(BOUND, state=state))
    assert (arq.hostname, arq.rp_uuid, arq.instance_uuid) == (None, None, None)
    assert (arq.instance_slot, owners, reasons) == (None, {}, [])


def test_failed_arq_keeps_instance_without_handle() -> None:
    ((arq,), owners, _) = convert(replace(BOUND, state='BindFailed'))
    assert (arq.instance_uuid, arq.instance_slot, owners) == ('i', 0, {})


@pytest.mark.parametrize(
    ('columns', 'reason'),
    [
        ({'state': 'Lost'}, 'state Lost is unknown'),
        ({'device_profile_id': 7}, 'device profile is not imported'),
        ({'project_id': 'p' * 65}, 'longer than 64'),
        ({'hostname': None}, 'without a server, host or provider'),
        ({'device_profile_group_id': -1}, 'has no group -1'),
        ({'instance_uuid': None}, 'without a server, host or provider'),
        ({'attach_handle_id': None}, 'without an attach handle'),
        ({'attach_handle_id': 3}, 'attach handle is not imported'),
    ],
)
def test_unusable_arq_is_refused(columns: dict[str, Any], reason: str) -> None:
    arqs, owners, reasons = convert(replace(BOUND, **columns))
    assert (arqs, owners) == ([], {})
    assert reason in reasons[0]


def test_handle_has_one_owner() -> None:
    arqs, owners, (reason,) = convert(BOUND, replace(BOUND, id=2, uuid='a2'))
    assert ([arq.uuid for arq in arqs], owners) == (['a1'], {'h1': 'a1'})
    assert 'Another ARQ owns its attach handle h1.' in reason


@pytest.mark.parametrize(
    ('stored', 'reason'),
    [
        (StoredRows(instances=frozenset({'i'})), 'has other ARQs here'),
        (StoredRows({Table.HANDLES: frozenset({'h1'})}), 'h1 was imported before'),
    ],
)
def test_arq_that_conflicts_with_stored_rows_is_refused(
    stored: StoredRows, reason: str
) -> None:
    arqs, _, reasons = convert(BOUND, stored=stored)
    assert not arqs
    assert reason in reasons[0]


def test_arq_imported_before_is_accepted() -> None:
    stored = StoredRows({Table.ARQS: frozenset({'a1'})}, instances=frozenset({'i'}))
    assert [arq.uuid for arq in convert(BOUND, stored=stored)[0]] == ['a1']


def test_missing_allocation_is_noted() -> None:
    cloud = replace(CLOUD, allocations={}, missing_instances=None)
    arqs, _, reasons = convert(BOUND, cloud=cloud)
    assert len(arqs) == 1
    assert 'has no allocation on provider rp' in reasons[0]
