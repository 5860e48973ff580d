# SPDX-License-Identifier: Apache-2.0
"""The functions that a bitstream makes of a card, as the image describes them.

A JSON object. Physical functions are ``pf_1``, ``pf_2`` and so on, virtual ones
``vf_1``...; each is an object with ``pci_offset``, ``capability`` and ``kpi``. They
stand at the top, in an object or list under ``pf`` and ``vf``, or, virtual ones, inside
of the physical function they belong to. One that stands elsewhere names it in
``parent``; else it belongs to the only one there is, else to the one of its number.
``pf_num`` and ``vf_num``, where given, must be right.

An object that has none of these is the form of some driver. It tells nothing here: the
driver gets it with the image, and what it shows after loading counts.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cyborg_lite.model.inventory import Deployable
from cyborg_lite.model.text import is_storable, shown

_LONGEST_TEXT: Final = 16_384  # characters
_DEEPEST: Final = 6  # brackets within one another
_MOST_FUNCTIONS: Final = 64
_LONGEST_VALUE: Final = 255
_NAME: Final = re.compile(r'(pf|vf)_?([0-9]{1,4})')
_LISTS: Final = ('pf', 'vf')
_NUMBERS: Final = ('pf_num', 'vf_num')
_FACTS: Final = ('pci_offset', 'capability', 'kpi')


class _Wrong(Exception):
    """With the sentence that says what."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function and the physical one above it."""

    name: str  # `pf_1`
    parent: str | None  # None: it is a physical one
    facts: Mapping[str, str] = field(default_factory=dict)


def faults(text: str) -> tuple[str, ...]:
    """What keeps it from being read; none: ``functions`` reads it."""
    try:
        functions(text)
    except _Wrong as wrong:
        return (str(wrong),)
    return ()


def parts(root_name: str, text: str) -> tuple[Deployable, ...]:
    """The functions as deployables below ``root_name``; none of them is scheduled.

    What can be scheduled and given to guests only a driver knows, by looking.
    """
    found = functions(text)
    return tuple(
        _deployable(root_name, each, found) for each in found if each.parent is None
    )


def functions(text: str) -> tuple[Function, ...]:
    """All of them, those above before those below; none: a driver has to read it."""
    described = _object(text)
    if described and not any(_is_of_our_form(key) for key in described):
        return ()
    found = [*_read(described, None)]
    _check_unique(found)
    _check_number(described, 'pf', found)
    _check_number(described, 'vf', found)
    if not any(each.name.startswith('pf') for each in found):
        raise _Wrong('it describes no physical function.')
    physical = [each.name for each in found if each.name.startswith('pf')]
    placed = [_placed(each, physical) for each in found]
    return tuple(sorted(placed, key=lambda each: each.parent is not None))


def _is_of_our_form(key: str) -> bool:
    return key in (*_LISTS, *_NUMBERS) or _NAME.fullmatch(key) is not None


def _deployable(
    root_name: str, function: Function, found: tuple[Function, ...]
) -> Deployable:
    below = [each for each in found if each.parent == function.name]
    return Deployable(
        name=f'{root_name}_{function.name}',
        attributes=function.facts,
        parts=tuple(_deployable(root_name, each, found) for each in below),
    )


def _object(text: str) -> Mapping[str, Any]:
    if len(text) > _LONGEST_TEXT:
        raise _Wrong(f'it is longer than {_LONGEST_TEXT} characters.')
    # Before it is parsed: the parser of the library recurses.
    depth = 0
    for char in text:
        depth += (char in '[{') - (char in ']}')
        if depth > _DEEPEST:
            raise _Wrong(f'it is nested more than {_DEEPEST} deep.')
    try:
        described = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise _Wrong('it is not JSON.') from None
    if not isinstance(described, dict):
        raise _Wrong('it is not an object.')
    return described


def _no_number(_: str) -> None:
    raise ValueError


def _read(described: Mapping[str, Any], above: str | None) -> Iterator[Function]:
    """Any: JSON of no known type."""
    for key, value in _entries(described):
        named = _NAME.fullmatch(key)
        if named is None:
            continue
        if not isinstance(value, dict):
            raise _Wrong(f'{key} is not an object.')
        name = f'{named[1]}_{int(named[2])}'
        if named[1] == 'pf' and above is not None:
            raise _Wrong(f'{name} stands inside of {above}.')
        if named[1] == 'vf' and (above or '').startswith('vf'):
            raise _Wrong(f'{name} stands inside of {above}.')
        yield Function(name, above or _named_parent(value), _facts(name, value))
        yield from _read(value, name)


def _entries(described: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The functions in a level, whichever way they are listed; and all else."""
    for key, value in described.items():
        if key not in _LISTS:
            yield key, value
            continue
        for each in value if isinstance(value, list) else [value]:
            if not isinstance(each, dict):
                raise _Wrong(f'{key} does not list objects.')
            if 'name' in each:
                yield str(each['name']), each
            else:
                yield from each.items()


def _named_parent(value: Mapping[str, Any]) -> str | None:
    parent = _NAME.fullmatch(str(value.get('parent', '')))
    return None if parent is None else f'{parent[1]}_{int(parent[2])}'


def _facts(name: str, value: Mapping[str, Any]) -> dict[str, str]:
    facts = {}
    for key in _FACTS:
        if key in value:
            said = value[key]
            text = said if isinstance(said, str) else json.dumps(said, sort_keys=True)
            if len(text) > _LONGEST_VALUE or not is_storable(text):
                raise _Wrong(f'{key} of {name} is too long, or cannot be kept.')
            facts[key] = text
    return facts


def _check_unique(found: list[Function]) -> None:
    if len(found) > _MOST_FUNCTIONS:
        raise _Wrong(f'it has more than {_MOST_FUNCTIONS} functions.')
    names = [each.name for each in found]
    for name in names:
        if names.count(name) > 1:
            raise _Wrong(f'it describes {name} twice.')


def _check_number(
    described: Mapping[str, Any], kind: str, found: list[Function]
) -> None:
    said = described.get(f'{kind}_num')
    there = sum(each.name.startswith(kind) for each in found)
    if said is not None and str(said) != str(there):
        raise _Wrong(f'{kind}_num is {shown(said)}, but {there} are described.')


def _placed(function: Function, physical: list[str]) -> Function:
    if function.name.startswith('pf'):
        return Function(function.name, None, function.facts)
    same_number = function.name.replace('vf', 'pf')
    parent = function.parent or (physical[0] if len(physical) == 1 else same_number)
    if parent not in physical:
        raise _Wrong(f'{function.name} belongs to {parent}, which is not there.')
    return Function(function.name, parent, function.facts)
