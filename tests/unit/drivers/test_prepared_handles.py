# SPDX-License-Identifier: Apache-2.0
"""Tests of the record of prepared handles."""

from cyborg_lite.drivers.prepared_handles import PreparedHandles
from tests.doubles.drivers import handle


def test_has_any_on_compares_control_address() -> None:
    prepared = PreparedHandles()
    prepared.add([handle('0000:01:00.0', 'a'), handle('0000:02:00.0', 'b')])
    prepared.remove('a')
    assert not prepared.has_any_on('0000:01:00.0')
    assert prepared.has_any_on('0000:02:00.0')
