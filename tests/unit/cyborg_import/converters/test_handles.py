# SPDX-License-Identifier: Apache-2.0
"""Tests of imported attach handles: their keys, and handles that are refused."""

import json
from datetime import UTC, datetime

import pytest

from cyborg_lite.cyborg_import.converters.handles import convert_handles
from cyborg_lite.cyborg_import.notes import Notes
from cyborg_lite.cyborg_import.source_rows import SourceHandle

NOW = datetime(2026, 11, 22, tzinfo=UTC)
CARD = '0000:3b:00.0'


def build_handle(number: int, kind: str = 'PCI', **fields: str) -> SourceHandle:
    info = {'domain': '0000', 'bus': '3B', 'device': '0', 'function': '0', **fields}
    return SourceHandle(number, f'h{number}', 1, 0, kind, json.dumps(info), NOW)


@pytest.mark.parametrize(
    ('function', 'mark', 'key'),
    [
        ('0', 'vgpu_2', f'{CARD}/nvidia-63/2'),
        ('0', '', f'{CARD}/nvidia-63'),
        ('4', 'vgpu_2', '0000:3b:00.4/nvidia-63'),
    ],
)
def test_vgpu_on_card_is_numbered(function: str, mark: str, key: str) -> None:
    row = build_handle(
        1, 'MDEV', function=function, asked_type='nvidia-63', vgpu_mark=mark
    )
    ((_, facts),) = convert_handles([row], {1: CARD}, Notes(NOW)).values()
    assert (facts.key, facts.needs_host) == (key, True)


@pytest.mark.parametrize(
    ('row', 'reason'),
    [
        (build_handle(1, 'TEST_PCI', bus='x'), 'not valid for the type TEST_PCI'),
        (build_handle(1, 'FLOPPY'), 'not valid for the type FLOPPY'),
        (build_handle(2), f'Another handle of its deployable is at {CARD}.'),
    ],
)
def test_unusable_handle_is_refused(row: SourceHandle, reason: str) -> None:
    notes = Notes(NOW)
    rows = [build_handle(9), row]
    assert list(convert_handles(rows, {1: CARD}, notes)) == [9]
    assert reason in notes.items[0].reason


def test_handle_of_missing_deployable_is_refused() -> None:
    notes = Notes(NOW)
    assert not convert_handles([build_handle(1)], {}, notes)
    assert [note.reason for note in notes.items] == ['Its deployable is not imported.']
