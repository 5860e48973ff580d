# SPDX-License-Identifier: Apache-2.0
"""Topology of a card with a bitstream: its functions, as described by the image.

The topology is a JSON object. Physical functions are named ``pf_1``, ``pf_2`` and so
on, virtual functions ``vf_1``, ``vf_2`` and so on. Each is an object with
``pci_offset``, ``capability`` and ``kpi``. Functions are keys of the top object, or
elements of an object or list under ``pf`` and ``vf``. A virtual function may also be
inside its physical function. Elsewhere, ``parent`` names the physical function. Without
``parent`` it belongs to the only physical function, or to the one with the same number.
``pf_num`` and ``vf_num`` are optional, and must be the number of functions.

An object without any of these keys has the format of a driver. It is ignored here: the
driver receives it with the image, and its scan after the load counts.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cyborg_lite.model.inventory.host_report import Deployable
from cyborg_lite.model.text import format_value, is_storable

_MAX_TEXT_LENGTH: Final = 16_384  # characters
_MAX_DEPTH: Final = 6  # of nested brackets
_MAX_FUNCTIONS: Final = 64
_MAX_VALUE_LENGTH: Final = 255
_NAME: Final = re.compile(r'(pf|vf)_?([0-9]{1,4})')
_LISTS: Final = ('pf', 'vf')
_COUNTS: Final = ('pf_num', 'vf_num')
_MAX_FUNCTION_NUMBER: Final = 0xFF  # device and function number on a bus
_FACTS: Final = ('pci_offset', 'capability', 'kpi')


class _TopologyFault(Exception):
    """A fault in a topology; the text is a sentence for the user."""


@dataclass(frozen=True, slots=True)
class TopologyFunction:
    """A function of the card, and its physical function."""

    name: str  # such as `pf_1`
    parent: str | None  # None: a physical function
    facts: Mapping[str, str] = field(default_factory=dict)


def list_topology_faults(text: str) -> tuple[str, ...]:
    """Return the fault of a topology; an empty tuple if it can be parsed."""
    try:
        parse_topology(text)
    except _TopologyFault as fault:
        return (str(fault),)
    return ()


def build_deployables(root_name: str, text: str) -> tuple[Deployable, ...]:
    """Return the functions as deployables below ``root_name``; none can be scheduled.

    Only a scan of the driver detects what can be scheduled and attached.
    """
    functions = parse_topology(text)
    return tuple(
        _build_deployable(root_name, function, functions)
        for function in functions
        if function.parent is None
    )


def find_function_address(card: str, facts: Mapping[str, str]) -> str | None:
    """Return the PCI address of a function, or None without a ``pci_offset``.

    The offset counts from function 0 of the slot of the card, eight per device number.

    :param card: PCI address of any function of the card
    """
    if 'pci_offset' not in facts:
        return None
    bus, _, slot = card.rpartition(':')
    number = (int(slot.partition('.')[0], 16) << 3) + _read_offset(facts['pci_offset'])
    if number > _MAX_FUNCTION_NUMBER:
        return None
    return f'{bus}:{number >> 3:02x}.{number & 7}'


def parse_topology(text: str) -> tuple[TopologyFunction, ...]:
    """Return all functions, parents first; empty if the format is that of a driver."""
    content = _load_object(text)
    keys = *_LISTS, *_COUNTS
    if content and not any(key in keys or _NAME.fullmatch(key) for key in content):
        return ()
    functions = [*_read_functions(content, None)]
    if len(functions) > _MAX_FUNCTIONS:
        raise _TopologyFault(f'it has more than {_MAX_FUNCTIONS} functions.')
    names = [function.name for function in functions]
    for name in names:
        if names.count(name) > 1:
            raise _TopologyFault(f'it describes {name} twice.')
    _check_count(content, 'pf', functions)
    _check_count(content, 'vf', functions)
    physical = [name for name in names if name.startswith('pf')]
    if not physical:
        raise _TopologyFault('it describes no physical function.')
    resolved = [_resolve_parent(function, physical) for function in functions]
    return tuple(sorted(resolved, key=lambda function: function.parent is not None))


def _build_deployable(
    root_name: str, function: TopologyFunction, functions: tuple[TopologyFunction, ...]
) -> Deployable:
    children = [item for item in functions if item.parent == function.name]
    return Deployable(
        name=f'{root_name}_{function.name}',
        attributes=function.facts,
        children=tuple(
            _build_deployable(root_name, item, functions) for item in children
        ),
    )


def _load_object(text: str) -> Mapping[str, Any]:
    if len(text) > _MAX_TEXT_LENGTH:
        raise _TopologyFault(f'it is longer than {_MAX_TEXT_LENGTH} characters.')
    # This check comes before the recursive JSON parser of the library.
    depth = 0
    for char in text:
        depth += (char in '[{') - (char in ']}')
        if depth > _MAX_DEPTH:
            raise _TopologyFault(f'it is nested more than {_MAX_DEPTH} deep.')
    try:
        content = json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise _TopologyFault('it is not JSON.') from None
    if not isinstance(content, dict):
        raise _TopologyFault('it is not an object.')
    return content


def _reject_constant(_: str) -> None:
    raise ValueError


def _read_functions(
    content: Mapping[str, Any], above: str | None
) -> Iterator[TopologyFunction]:
    """Yield the functions of one level of the JSON value and of the levels below."""
    for key, value in _list_entries(content):
        match = _NAME.fullmatch(key)
        if match is None:
            continue
        if not isinstance(value, dict):
            raise _TopologyFault(f'{key} is not an object.')
        name = f'{match[1]}_{int(match[2])}'
        if match[1] == 'pf' and above is not None:
            raise _TopologyFault(f'{name} is inside {above}.')
        if match[1] == 'vf' and (above or '').startswith('vf'):
            raise _TopologyFault(f'{name} is inside {above}.')
        parent = above or _read_parent(value)
        yield TopologyFunction(name, parent, _read_facts(name, value))
        yield from _read_functions(value, name)


def _list_entries(content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the entries of one level, including the elements of ``pf`` and ``vf``."""
    for key, value in content.items():
        if key not in _LISTS:
            yield key, value
            continue
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, dict):
                raise _TopologyFault(f'{key} does not list objects.')
            if 'name' in item:
                yield str(item['name']), item
            else:
                yield from item.items()


def _read_parent(value: Mapping[str, Any]) -> str | None:
    match = _NAME.fullmatch(str(value.get('parent', '')))
    return None if match is None else f'{match[1]}_{int(match[2])}'


def _read_facts(name: str, value: Mapping[str, Any]) -> dict[str, str]:
    facts = {}
    for key in _FACTS:
        if key in value:
            fact = value[key]
            text = fact if isinstance(fact, str) else json.dumps(fact, sort_keys=True)
            if len(text) > _MAX_VALUE_LENGTH or not is_storable(text):
                raise _TopologyFault(f'{key} of {name} is too long or not storable.')
            facts[key] = text
    _check_offset(name, facts)
    return facts


def _check_offset(name: str, facts: Mapping[str, str]) -> None:
    try:
        offset = _read_offset(facts.get('pci_offset', '0'))
    except ValueError:
        offset = -1
    if not 0 <= offset <= _MAX_FUNCTION_NUMBER:
        limit = _MAX_FUNCTION_NUMBER
        raise _TopologyFault(f'pci_offset of {name} is not a number from 0 to {limit}.')


def _read_offset(text: str) -> int:
    """Return an offset, decimal or with 0x.

    :raises ValueError: the text is not a number
    """
    return int(text, 16 if text.lower().startswith('0x') else 10)


def _check_count(
    content: Mapping[str, Any], prefix: str, functions: list[TopologyFunction]
) -> None:
    expected = content.get(f'{prefix}_num')
    actual = sum(function.name.startswith(prefix) for function in functions)
    if expected is not None and str(expected) != str(actual):
        raise _TopologyFault(
            f'{prefix}_num is {format_value(expected)}, but {actual} are described.'
        )


def _resolve_parent(
    function: TopologyFunction, physical: list[str]
) -> TopologyFunction:
    if function.name.startswith('pf'):
        return TopologyFunction(function.name, None, function.facts)
    same_number = function.name.replace('vf', 'pf')
    parent = function.parent or (physical[0] if len(physical) == 1 else same_number)
    if parent not in physical:
        raise _TopologyFault(
            f'{function.name} belongs to {parent}, which does not exist.'
        )
    return TopologyFunction(function.name, parent, function.facts)
