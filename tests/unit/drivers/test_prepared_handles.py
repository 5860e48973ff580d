# SPDX-License-Identifier: Apache-2.0
"""Tests of the record of prepared handles."""

from dataclasses import replace

import pytest

from cyborg_lite.drivers.prepared_handles import PreparedHandles
from cyborg_lite.model.devices.devices import AllocatedHandle
from tests.doubles.drivers import handle

INFO = {'domain': '0000', 'bus': '01', 'device': '00', 'function': '4'}
FIRST = replace(handle('0000:01:00.0', 'a'), info=INFO)
SECOND = replace(handle('0000:02:00.0', 'b'), info={**INFO, 'bus': '02'})


@pytest.fixture
def prepared_handles() -> PreparedHandles:
    prepared_handles = PreparedHandles()
    prepared_handles.add([FIRST, SECOND])
    return prepared_handles


def test_has_uuid_after_add_until_remove(prepared_handles: PreparedHandles) -> None:
    assert prepared_handles.has_uuid('a')
    prepared_handles.remove('a')
    assert not prepared_handles.has_uuid('a')
    assert prepared_handles.has_uuid('b')


def test_remove_unknown_uuid_is_ignored(prepared_handles: PreparedHandles) -> None:
    prepared_handles.remove('unknown')
    assert prepared_handles.has_uuid('a')


@pytest.mark.parametrize(
    ('address', 'handles'),
    [('0000:01:00.4', (FIRST,)), ('0000:02:00.4', (SECOND,)), ('0000:01:00.0', ())],
)
def test_list_at_compares_address_of_info(
    prepared_handles: PreparedHandles,
    address: str,
    handles: tuple[AllocatedHandle, ...],
) -> None:
    assert prepared_handles.list_at(address) == handles


def test_has_any_on_compares_control_address(
    prepared_handles: PreparedHandles,
) -> None:
    assert prepared_handles.has_any_on('0000:01:00.0')
    prepared_handles.remove('a')
    assert not prepared_handles.has_any_on('0000:01:00.0')
    assert prepared_handles.has_any_on('0000:02:00.0')


def test_add_same_uuid_replaces_handle(prepared_handles: PreparedHandles) -> None:
    changed = replace(FIRST, info={**INFO, 'function': '5'})
    prepared_handles.add([changed])
    assert prepared_handles.list_at('0000:01:00.4') == ()
    assert prepared_handles.list_at('0000:01:00.5') == (changed,)
