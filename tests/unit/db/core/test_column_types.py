# SPDX-License-Identifier: Apache-2.0
"""Tests of values in columns: typed attributes."""

import pytest

from cyborg_lite import codec
from cyborg_lite.db.core.column_types import read_attributes
from cyborg_lite.errors.daemons import MalformedData
from cyborg_lite.model.inventory import typed_attributes


def test_read_attributes_ignores_types_of_newer_releases() -> None:
    memory = typed_attributes.MEMORY.of(16)
    stored = [codec.dump(memory), {'name': 'x', 'type': 'duration', 'value': '1'}]
    assert read_attributes(stored) == (memory,)
    assert read_attributes(None) == ()


def test_read_attributes_refuses_malformed_attribute() -> None:
    with pytest.raises(MalformedData):
        read_attributes([{'name': 'x', 'type': 'integer'}])
