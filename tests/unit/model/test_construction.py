# SPDX-License-Identifier: Apache-2.0
"""Faster construction of frozen data classes."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from cyborg_lite.model.construction import find_constructor


@dataclass(frozen=True, slots=True)
class Card:
    """A class with defaults."""

    name: str
    units: int = 4
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckedCard:
    """A class that checks its values."""

    units: int

    def __post_init__(self) -> None:
        if self.units < 1:
            raise ValueError('units')


@dataclass(frozen=True, slots=True)
class NamedCard(Card):
    """A class with a base class."""

    label: str = ''


@dataclass(frozen=True)
class PlainCard:
    """A class without slots."""

    name: str


build = find_constructor(Card)


def test_object_equals_that_of_the_class() -> None:
    built = build('a', units=2, options={'x': 'y'})
    assert built == Card('a', 2, {'x': 'y'})
    assert type(built) is Card
    assert repr(built) == repr(Card('a', 2, {'x': 'y'}))


def test_defaults_apply() -> None:
    assert build('a') == Card('a')
    assert build('a').options is not build('a').options


def test_object_is_frozen() -> None:
    built = build('a')
    with pytest.raises(dataclasses.FrozenInstanceError):
        built.name = 'b'  # type: ignore[misc]  # the class is frozen
    assert dataclasses.replace(built, name='b') == Card('b')


def test_missing_and_unknown_fields_are_refused() -> None:
    with pytest.raises(TypeError):
        build()  # type: ignore[call-arg]  # the test
    with pytest.raises(TypeError):
        build('a', size=1)  # type: ignore[call-arg]  # the test


def test_class_with_checks_keeps_its_constructor() -> None:
    with pytest.raises(ValueError, match='units'):
        find_constructor(CheckedCard)(0)


def test_class_with_a_base_keeps_its_constructor() -> None:
    assert find_constructor(NamedCard)('a', label='b') == NamedCard('a', label='b')


def test_class_without_slots_keeps_its_constructor() -> None:
    assert find_constructor(PlainCard)('a') == PlainCard('a')
