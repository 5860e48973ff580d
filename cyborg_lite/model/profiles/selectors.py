# SPDX-License-Identifier: Apache-2.0
"""Selectors of device profiles: expressions over the typed attributes of deployables.

``selector_grammar.py`` parses the text. An expression has three values: True, False and
None, which means unknown. A deployable matches only if the value is True. Each selector
has a trait whose name is a digest of its text. The conductor sets the trait on the
provider of each deployable that matches.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import ge, gt, le, lt
from typing import Any, Final, TypeAlias

from cyborg_lite.model.inventory.typed_attributes import (
    AttributeType,
    TypedAttribute,
    Value,
    convert_unit,
    parse_version,
)

KEY: Final = 'accel:selector'
TRAIT_PREFIX: Final = 'CUSTOM_CYBORG_SEL_'
_DIGITS: Final = 24  # of the digest, hexadecimal


Attributes: TypeAlias = Mapping[str, TypedAttribute]
"""The attributes of a deployable, by name."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of an expression."""

    value: int | str | bool
    position: int  # of its first character in the text, from 0
    unit: str = ''  # of an integer


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of an attribute with a constant, or with each one of a list."""

    name: str  # of the attribute
    operator: str  # ==, !=, <, <=, >, >= or in
    literals: tuple[Literal, ...]  # one, unless the operator is `in`
    position: int  # of the name


@dataclass(frozen=True, slots=True)
class Negation:
    """The negation of an expression."""

    operand: 'Expression'


@dataclass(frozen=True, slots=True)
class Combination:
    """Expressions that are combined by ``and`` or by ``or``."""

    operator: str  # and, or
    operands: tuple['Expression', ...]  # two or more


Expression: TypeAlias = Comparison | Negation | Combination


def list_comparisons(expression: Expression) -> Iterator[Comparison]:
    """Yield the comparisons of an expression in the order of the text."""
    if isinstance(expression, Comparison):
        yield expression
    elif isinstance(expression, Negation):
        yield from list_comparisons(expression.operand)
    else:
        for operand in expression.operands:
            yield from list_comparisons(operand)


def name_trait(tokens: Iterable[str]) -> str:
    """Return the name of the trait of a selector.

    :param tokens: the words and signs of the selector; spaces between them have no
        meaning
    """
    digest = hashlib.sha256('\n'.join(tokens).encode()).hexdigest()
    return f'{TRAIT_PREFIX}{digest[:_DIGITS].upper()}'


# --- evaluation ---


def matches(expression: Expression, attributes: Attributes) -> bool:
    """Check whether a deployable with the attributes matches."""
    return evaluate(expression, attributes) is True


def evaluate(expression: Expression, attributes: Attributes) -> bool | None:
    """Return the value of an expression; None: it is unknown.

    The logic is the strong one of Kleene: ``and`` is False if an operand is False, and
    ``or`` is True if an operand is True, even if the others are unknown.
    """
    if isinstance(expression, Comparison):
        return _compare(expression, attributes.get(expression.name))
    if isinstance(expression, Negation):
        value = evaluate(expression.operand, attributes)
        return None if value is None else not value
    values = [evaluate(operand, attributes) for operand in expression.operands]
    decisive = expression.operator == 'or'
    if decisive in values:
        return decisive
    return None if None in values else not decisive


def _compare(comparison: Comparison, attribute: TypedAttribute | None) -> bool | None:
    if attribute is None:
        return None
    results = [
        _compare_literal(attribute, comparison.operator, literal)
        for literal in comparison.literals
    ]
    if True in results:
        return True
    return None if None in results else False


# Any: numbers, or versions as tuples of numbers.
_ORDERS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    '<': lt,
    '<=': le,
    '>': gt,
    '>=': ge,
}


def _compare_literal(
    attribute: TypedAttribute, operator: str, literal: Literal
) -> bool | None:
    """Return the result; None: the types or the units do not fit."""
    if attribute.type is AttributeType.INTEGER:
        value, threshold = _convert_integers(attribute, literal)
    else:
        value, threshold = _convert_values(attribute, literal)
    if value is None or type(value) is not type(threshold):
        return None
    if operator in ('==', 'in'):
        return value == threshold
    if operator == '!=':
        return value != threshold
    # Strings and booleans have no order.
    is_ordered = isinstance(value, tuple) or type(value) is int
    return _ORDERS[operator](value, threshold) if is_ordered else None


def _convert_values(
    attribute: TypedAttribute, literal: Literal
) -> tuple[Value | None, Value | None]:
    """Return both sides of a comparison; None: the side cannot be compared."""
    value = attribute.parse()
    if literal.unit:
        return value, None
    if attribute.type is AttributeType.VERSION and isinstance(literal.value, str):
        return value, parse_version(literal.value)
    return value, literal.value


def _convert_integers(
    attribute: TypedAttribute, literal: Literal
) -> tuple[Value | None, Value | None]:
    """Return both sides in the smaller unit, so that nothing is rounded."""
    value, threshold = attribute.parse(), literal.value
    if type(value) is not int or type(threshold) is not int:
        return None, None
    if not literal.unit:
        return value, threshold
    factors = convert_unit(literal.unit, attribute.unit)
    if factors is None:
        return None, None
    return value * factors[1], threshold * factors[0]


# --- groups of device profiles ---


@dataclass(frozen=True, slots=True)
class Selector:
    """A selector with its trait."""

    text: str
    expression: Expression
    trait: str


def list_computed_traits(group: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of a group that name traits of selectors."""
    prefix = f'trait:{TRAIT_PREFIX}'
    return tuple(key for key in group if key.startswith(prefix))


def select_traits(
    selectors: Sequence[Selector], attributes: Iterable[TypedAttribute]
) -> frozenset[str]:
    """Return the traits of the selectors that a deployable matches."""
    by_name = {attribute.name: attribute for attribute in attributes}
    return frozenset(
        selector.trait
        for selector in selectors
        if matches(selector.expression, by_name)
    )
