# SPDX-License-Identifier: Apache-2.0
"""The arguments of a request: what stands behind the question mark."""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final
from urllib.parse import parse_qsl

from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model import uuids
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import shown

PAGING: Final = ('limit', 'marker', 'sort_key', 'sort_dir')

_MOST: Final = 1000
_FILTER: Final = re.compile(r'filters(?:\[([0-9]{1,4})\])?\.(field|value)')
_LIMIT: Final = re.compile(r'[0-9]{1,20}')
_LARGEST_LIMIT: Final = 2**31 - 1  # what every database can count to


def read(
    query_string: str, known: Collection[str], filters: Collection[str] = ()
) -> dict[str, str]:
    """Each argument by its name, and each filter by that of its field.

    :param query_string: as WSGI has it
    :param filters: the fields that ``filters`` may name; none: there is no such thing
    :raises InvalidInput: something is unknown, or given twice, or not UTF-8
    """
    found: dict[str, str] = {}
    paired: list[tuple[str, str]] = []
    for name, value in _pairs(query_string):
        if filters and _FILTER.fullmatch(name):
            paired.append((name, value))
        elif name in known:
            _add(found, name, value)
        else:
            raise InvalidInput(reason=f'Unknown query argument {shown(name)}.')
    for field, value in _filters(paired):
        if field not in filters:
            raise InvalidInput(reason=f'Unknown filter {shown(field)}.')
        _add(found, field, value)
    return found


def _pairs(query_string: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query_string.encode('latin-1').decode('utf-8'),
            keep_blank_values=True,
            errors='strict',
            max_num_fields=_MOST,
        )
    except ValueError:
        reason = 'The query string is not UTF-8, or has too many arguments.'
        raise InvalidInput(reason=reason) from None


def _add(found: dict[str, str], name: str, value: str) -> None:
    if name in found:
        raise InvalidInput(reason=f'The query argument {name} is given twice.')
    found[name] = value


def _filters(pairs: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Fields with their values: by number where there is one, else by position."""
    places: dict[str, dict[str, str]] = {}
    met: Counter[str] = Counter()
    for name, text in pairs:
        place, _, side = name.removeprefix('filters').rpartition('.')
        if not place:
            place = str(met[side])
            met[side] += 1
        _add(places.setdefault(place, {}), side, text)
    for both in places.values():
        if len(both) != 2:
            raise InvalidInput(reason='Each filter needs a field and a value.')
        yield both['field'], both['value']


def query(
    found: dict[str, str], detailed: bool = False, /, **filters: tuple[str, ...] | None
) -> Query:
    """The page that the arguments ask for.

    :param detailed: with what a client of 2.4 reads besides
    :param filters: what else the query asks for; None: does not
    :raises InvalidInput: an argument of ``PAGING`` is wrong
    """
    direction = found.get('sort_dir', 'asc')
    if direction not in ('asc', 'desc'):
        raise InvalidInput(reason='sort_dir must be asc or desc.')
    return Query(
        filters={
            name: values for name, values in filters.items() if values is not None
        },
        limit=_limit(found.get('limit')),
        marker=None if 'marker' not in found else uuid('marker', found['marker']),
        sort_key=found.get('sort_key'),
        descending=direction == 'desc',
        detailed=detailed,
    )


def _limit(text: str | None) -> int | None:
    if text is None:
        return None
    number = int(text) if _LIMIT.fullmatch(text) else 0
    if number < 1:
        raise InvalidInput(reason='limit must be a positive whole number.')
    return min(number, _LARGEST_LIMIT)


def exact(found: dict[str, str], names: Collection[str]) -> dict[str, tuple[str]]:
    """Filters of those names that are given; each asks for the one value."""
    return {name: (found[name],) for name in names if name in found}


def switches(found: dict[str, str], names: Collection[str]) -> dict[str, tuple[str]]:
    """As ``exact``, of fields that are true or false.

    :raises InvalidInput: one is neither
    """
    given = {name: found[name].lower() for name in names if name in found}
    for name, word in given.items():
        if word not in ('true', 'false'):
            raise InvalidInput(reason=f'{name} must be true or false.')
    return {name: (word,) for name, word in given.items()}


def uuid(name: str, text: str) -> str:
    """The UUID in its one spelling.

    :raises InvalidInput: ``text`` is none
    """
    found = uuids.canonical(text)
    if found is None:
        raise InvalidInput(reason=f'{name} must be a UUID: {shown(text)} is none.')
    return found


def listed(text: str) -> tuple[str, ...]:
    """The elements of a comma-separated list, without empty ones.

    :raises InvalidInput: there are more than a database takes in one statement
    """
    elements = tuple(part for item in text.split(',') if (part := item.strip()))
    if len(elements) > _MOST:
        raise InvalidInput(reason=f'A list may have at most {_MOST} elements.')
    return elements
