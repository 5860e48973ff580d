# SPDX-License-Identifier: Apache-2.0
"""Tests of the evaluation of selectors."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.typed_attributes import AttributeType, TypedAttribute
from cyborg_lite.model.profiles.selector_grammar import parse_selector
from cyborg_lite.model.profiles.selectors import evaluate, select_traits
from tests.builders.selector_texts import (
    DEVICES,
    TREES,
    Node,
    build_attributes,
    decide,
    write_text,
)


def evaluate_text(text: str, *attributes: TypedAttribute) -> bool | None:
    by_name = {attribute.name: attribute for attribute in attributes}
    return evaluate(parse_selector(text).expression, by_name)


@settings(max_examples=500, deadline=None)
@given(TREES, st.lists(DEVICES, min_size=1, max_size=10))
def test_random_fleet_matches_oracle(tree: Node, fleet: list[dict[str, Any]]) -> None:
    selector = parse_selector(write_text(tree))
    for device in fleet:
        attributes = build_attributes(device)
        by_name = {attribute.name: attribute for attribute in attributes}
        expected = decide(tree, device)
        assert evaluate(selector.expression, by_name) is expected
        assert (select_traits([selector], attributes) != frozenset()) is (
            expected is True
        )


@pytest.mark.parametrize(
    ('text', 'value'),
    [
        ('device.memory_mib >= 40GiB', True),
        ('device.memory_mib > 40GiB', False),
        ('device.memory_mib >= 42GB', True),
        ('device.memory_mib == 41943040KiB', True),
        ('device.memory_mib >= 40GHz', None),
        ('device.memory_mib == "40960"', None),
        ('device.memory_mib == true', None),
        ('device.memory_mib', None),
        ('device.unknown == 1', None),
        ('not device.unknown == 1', None),
        ('device.unknown == 1 or not device.unknown == 1', None),
        ('device.unknown == 1 or device.memory_mib > 0', True),
        ('device.unknown == 1 and device.memory_mib < 0', False),
    ],
)
def test_evaluate_units_and_unknown_values(text: str, value: bool | None) -> None:
    assert evaluate_text(text, typed_attributes.MEMORY.of(40960)) is value


@pytest.mark.parametrize(
    ('operator', 'literal', 'value'),
    [
        ('>=', '550.54', True),
        ('>=', '550.100', False),
        ('==', '550.54.0', True),
        ('<', '551', True),
        ('>', 'x', None),
    ],
)
def test_evaluate_versions(operator: str, literal: str, value: bool | None) -> None:
    version = typed_attributes.DRIVER_VERSION.of('550.54')
    text = f"device.driver_version {operator} '{literal}'"
    assert evaluate_text(text, version) is value


def test_evaluate_strings_have_no_order() -> None:
    architecture = typed_attributes.ARCHITECTURE.of('ada')
    assert evaluate_text("device.architecture < 'b'", architecture) is None


def test_evaluate_unreadable_value_is_unknown() -> None:
    attribute = TypedAttribute('memory_mib', AttributeType.INTEGER, 'many', 'MiB')
    assert evaluate_text('device.memory_mib != 1', attribute) is None
