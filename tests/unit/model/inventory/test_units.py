# SPDX-License-Identifier: Apache-2.0
"""Tests of units."""

from cyborg_lite.model.inventory.typed_attributes import convert_unit, list_units


def test_convert_unit_returns_exact_factors() -> None:
    assert convert_unit('GiB', 'MiB') == (2**30, 2**20)
    assert convert_unit('cells', 'cells') == (1, 1)
    assert convert_unit('GiB', 'W') is None
    assert convert_unit('GiB', '') is None


def test_list_units_of_one_dimension() -> None:
    assert list_units('MT/s') == ('T/s', 'kT/s', 'MT/s', 'GT/s')
    assert list_units('cells') == ('cells',)
    assert list_units('') == ()
