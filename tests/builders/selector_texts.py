# SPDX-License-Identifier: Apache-2.0
"""Random selectors and deployables, and an oracle that evaluates them directly.

The oracle knows nothing of the grammar. It evaluates the nested tuples from which the
text of a selector is written.
"""

from collections.abc import Mapping
from typing import Any, Final

from hypothesis import strategies as st

from cyborg_lite.model.inventory.typed_attributes import (
    AttributeDeclaration,
    AttributeType,
    TypedAttribute,
)

DECLARATIONS: Final = (
    AttributeDeclaration('memory_mib', AttributeType.INTEGER, 'MiB'),
    AttributeDeclaration('numa_node', AttributeType.INTEGER),
    AttributeDeclaration('architecture', AttributeType.STRING),
    AttributeDeclaration('driver_version', AttributeType.VERSION),
    AttributeDeclaration('fast', AttributeType.BOOLEAN),
)
_VALUES: Final[Mapping[str, tuple[Any, ...]]] = {
    'memory_mib': (1024, 2048, 40000),
    'numa_node': (0, 1),
    'architecture': ('ada', 'hopper', "it's"),
    'driver_version': ('550', '550.54', '550.9', '551.0'),
    'fast': (True, False),
}
_OPERATORS: Final[tuple[str, ...]] = ('==', '!=', '<', '<=', '>', '>=')

Node = tuple[Any, ...]  # operator and operands, of any type


def _comparisons() -> st.SearchStrategy[Node]:
    def build(name: str) -> st.SearchStrategy[Node]:
        values = st.sampled_from(_VALUES[name])
        has_order = name not in ('architecture', 'fast')
        operators = _OPERATORS if has_order else ('==', '!=')
        single = st.tuples(st.sampled_from(operators), st.just(name), values)
        several = st.tuples(
            st.just('in'), st.just(name), st.lists(values, min_size=1, max_size=3)
        )
        return single | several

    return st.sampled_from(sorted(_VALUES)).flatmap(build)


TREES: Final = st.recursive(
    _comparisons(),
    lambda inner: (
        st.tuples(st.just('not'), inner)
        | st.tuples(st.sampled_from(('and', 'or')), inner, inner)
    ),
    max_leaves=6,
)
DEVICES: Final[st.SearchStrategy[dict[str, Any]]] = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) for name, values in _VALUES.items()}
)
"""Values by name; a name that is missing has an unknown value."""


def write_text(node: Node) -> str:
    """Return the selector of a tree."""
    operator, *operands = node
    if operator == 'not':
        return f'not ({write_text(operands[0])})'
    if operator in ('and', 'or'):
        first, second = map(write_text, operands)
        return f'({first}) {operator} ({second})'
    name, value = operands
    if operator == 'in':
        return f'device.{name} in [{", ".join(map(_write_literal, value))}]'
    return f'device.{name} {operator} {_write_literal(value)}'


def _write_literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        quote = '"' if "'" in value else "'"
        return f'{quote}{value}{quote}'
    return str(value)


def build_attributes(device: Mapping[str, Any]) -> tuple[TypedAttribute, ...]:
    """Return the typed attributes of a device."""
    by_name = {item.name: item for item in DECLARATIONS}
    return tuple(by_name[name].of(value) for name, value in device.items())


def decide(node: Node, device: Mapping[str, Any]) -> bool | None:
    """Return the value of a tree for a device; None: it is unknown."""
    operator: str = node[0]
    operands = node[1:]
    if operator == 'not':
        value = decide(operands[0], device)
        return None if value is None else not value
    if operator in ('and', 'or'):
        values = {decide(operand, device) for operand in operands}
        if (operator == 'or') in values:
            return operator == 'or'
        return None if None in values else operator == 'and'
    name, value = operands
    if name not in device:
        return None
    first = _weigh(name, device[name])
    if operator == 'in':
        return bool(first in [_weigh(name, item) for item in value])
    second = _weigh(name, value)
    return bool(
        {
            '==': first == second,
            '!=': first != second,
            '<': first < second,
            '<=': first <= second,
            '>': first > second,
            '>=': first >= second,
        }[operator]
    )


def _weigh(name: str, value: Any) -> Any:
    """Return a value in a form with the order of its type."""
    if name != 'driver_version':
        return value
    major, _, minor = value.partition('.')
    return int(major) * 1000 + int(minor or 0)
