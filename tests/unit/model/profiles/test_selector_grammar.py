# SPDX-License-Identifier: Apache-2.0
"""Tests of the grammar of selectors and of its errors."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite.errors.profiles import InvalidSelector
from cyborg_lite.model.profiles.selector_grammar import check_selector, parse_selector
from cyborg_lite.model.profiles.selectors import Combination, Comparison, Negation
from tests.builders.selector_texts import DECLARATIONS, TREES, Node, write_text


def test_parse_precedence_is_not_and_or() -> None:
    text = 'device.a or not device.b and device.c'
    expression = parse_selector(text).expression
    assert isinstance(expression, Combination)
    assert expression.operator == 'or'
    conjunction = expression.operands[1]
    assert isinstance(conjunction, Combination)
    assert isinstance(conjunction.operands[0], Negation)


def test_parse_not_in_is_negation() -> None:
    expression = parse_selector("device.a not in ['x', 'y']").expression
    assert isinstance(expression, Negation)
    comparison = expression.operand
    assert isinstance(comparison, Comparison)
    assert [literal.value for literal in comparison.literals] == ['x', 'y']


def test_trait_ignores_spaces_only() -> None:
    first = parse_selector('device.a>=4GiB')
    assert first.trait == parse_selector(' device.a  >= 4GiB\n').trait
    assert first.trait != parse_selector('device.a >= 5GiB').trait
    assert parse_selector("device.a == 'x y'") != parse_selector("device.a == 'xy'")


@pytest.mark.parametrize(
    ('text', 'position', 'reason'),
    [
        ('', 1, 'at the end: an attribute such as'),
        ('memory_mib > 1', 1, "'memory_mib > 1': an attribute such as"),
        ('device.', 1, 'an attribute such as'),
        ('device.a >', 11, 'at the end: a number'),
        ('device.a > 1 device.b', 14, "'and', 'or' or the end is expected"),
        ('device.a = 1', 10, 'it is not expected here'),
        ("device.a == 'x", 13, 'the string has no end'),
        ('(device.a', 10, r"'\)' is expected"),
        ('device.a in 1', 13, r"'\[' is expected"),
        ('device.a in [1 2]', 16, "',' or ']' is expected"),
        ('device.a not 1', 14, "'in' is expected"),
        ('device.a == device.b', 13, 'a number, a string in quotes'),
        ('device.a > ' + '9' * 19, 12, 'more than 18 digits'),
        ('(' * 17 + 'device.a' + ')' * 17, 18, 'nested more than 16 times'),
        ('not ' * 17 + 'device.a', 69, 'nested more than 16 times'),
        (f'device.a in [{",".join("1" * 65)}]', 143, 'more than 64 values'),
        ('device.a' + ' ' * 1024, 1025, 'more than 1024 characters'),
    ],
)
def test_parse_error_names_character(text: str, position: int, reason: str) -> None:
    with pytest.raises(InvalidSelector, match=reason) as caught:
        parse_selector(text)
    assert caught.value.kwargs['position'] == position


@pytest.mark.parametrize(
    ('text', 'position', 'reason'),
    [
        ('device.fast and device.memry > 1', 17, 'declared are architecture'),
        (
            'device.memory_mib > 4GHz',
            21,
            'GHz does not fit .* known are B, kB',
        ),
        ('device.numa_node == 1GiB', 21, 'it has no unit'),
        ("device.memory_mib in [1, '2']", 26, 'is compared with a number'),
        ('device.memory_mib', 1, 'is compared with a number'),
        ('device.architecture == 1', 24, 'is compared with a string in quotes'),
        ("device.architecture > 'a'", 23, 'has no order'),
        ('device.fast == 1', 16, 'is compared with true or false'),
        ('device.driver_version >= 550', 26, 'a version in quotes'),
        ("device.driver_version >= 'x'", 26, 'a version in quotes'),
    ],
)
def test_check_error_names_character(text: str, position: int, reason: str) -> None:
    with pytest.raises(InvalidSelector, match=reason) as caught:
        check_selector(parse_selector(text), DECLARATIONS)
    assert caught.value.kwargs['position'] == position


@given(TREES)
def test_check_written_tree_is_valid(tree: Node) -> None:
    check_selector(parse_selector(write_text(tree)), DECLARATIONS)


@given(st.text(alphabet='device.ab0<>=!()[],\'" \nnotrutein', max_size=60) | st.text())
def test_parse_any_text_raises_invalid_selector_only(text: str) -> None:
    with contextlib.suppress(InvalidSelector):
        parse_selector(text)
