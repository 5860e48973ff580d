# SPDX-License-Identifier: Apache-2.0
"""Tests of the rows of units in a picture."""

from cyborg_lite.model.hosts.topology import Availability
from cyborg_lite.rendering.unit_rows import list_unit_rows
from tests.builders.host_topologies import PROJECT, USER, build_unit


def test_unit_rows_many_units_end_with_summary() -> None:
    units = [build_unit(str(number), Availability.FREE) for number in range(40)]
    rows = list_unit_rows(units)
    assert len(rows) == 16
    assert rows[-1].text == 'and 25 units: 25 free'
    assert rows[-1].availability is None
    assert len(list_unit_rows(units[:16])) == 16
    assert list_unit_rows(units[:16])[-1].availability is Availability.FREE


def test_unit_row_shortens_ids_of_user() -> None:
    (row,) = list_unit_rows([build_unit('a', Availability.USED, user=USER)])
    assert f'project {PROJECT[:8]}' in row.text
    assert PROJECT not in row.text
    assert PROJECT in row.full_text
