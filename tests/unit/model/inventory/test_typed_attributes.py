# SPDX-License-Identifier: Apache-2.0
"""Tests of typed attributes and their units."""

import re

import pytest

from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.typed_attributes import (
    AttributeDeclaration,
    AttributeType,
    TypedAttribute,
    convert_unit,
    find_declaration_fault,
    find_fault,
    list_units,
)

CELLS = AttributeDeclaration('cells', AttributeType.INTEGER)


@pytest.mark.parametrize('value', ['x', '1.5', 10**18])
def test_declaration_of_wrong_value_is_refused(value: int | str) -> None:
    with pytest.raises(ValueError, match='cells cannot have the value'):
        CELLS.of(value)


def test_declaration_of_boolean_is_lower_case() -> None:
    declaration = AttributeDeclaration('fast', AttributeType.BOOLEAN)
    assert declaration.of(True).value == 'true'


@pytest.mark.parametrize('declaration', [*typed_attributes.SHARED, CELLS])
def test_valid_declaration_has_no_fault(declaration: AttributeDeclaration) -> None:
    assert find_declaration_fault(declaration) is None


@pytest.mark.parametrize(
    ('declaration', 'fault'),
    [
        (AttributeDeclaration('Cells', AttributeType.INTEGER), 'not a valid name'),
        (AttributeDeclaration('c' * 65, AttributeType.INTEGER), 'not a valid name'),
        (AttributeDeclaration('text', AttributeType.STRING, 'm'), 'is no integer'),
        (AttributeDeclaration('cells', AttributeType.INTEGER, 'm' * 17), 'too long'),
        (
            AttributeDeclaration('memory_mib', AttributeType.INTEGER, 'GiB'),
            r'must be declared as memory_mib \(integer in MiB\)',
        ),
        (typed_attributes.VENDOR, 'is reported for every device'),
    ],
)
def test_find_declaration_fault(declaration: AttributeDeclaration, fault: str) -> None:
    text = find_declaration_fault(declaration)
    assert text is not None
    assert re.search(fault, text)


@pytest.mark.parametrize('value', ['', 'x', '1' * 300])
def test_find_fault_of_value(value: str) -> None:
    attribute = TypedAttribute('cells', AttributeType.INTEGER, value)
    assert find_fault(attribute) == 'cells has a value that is no integer'


# --- units ---


def test_convert_unit_returns_exact_factors() -> None:
    assert convert_unit('GiB', 'MiB') == (2**30, 2**20)
    assert convert_unit('cells', 'cells') == (1, 1)
    assert convert_unit('GiB', 'W') is None
    assert convert_unit('GiB', '') is None


def test_list_units_of_one_dimension() -> None:
    assert list_units('MT/s') == ('T/s', 'kT/s', 'MT/s', 'GT/s')
    assert list_units('cells') == ('cells',)
    assert list_units('') == ()
