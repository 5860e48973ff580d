# SPDX-License-Identifier: Apache-2.0
"""Parsing of the query arguments of a request."""

import enum
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final
from urllib.parse import parse_qsl

from cyborg_lite.api.schemas.arguments import LONGEST_PREFIX
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model import uuids
from cyborg_lite.model.queries import Query
from cyborg_lite.model.text import format_value, is_storable

PAGES: Final = ('limit', 'marker')
PAGING: Final = (*PAGES, 'sort_key', 'sort_dir')

PREFIX: Final = 'name_prefix'

_REPEATABLE: Final = 'fields'
_MAX_ELEMENTS: Final = 1000
_FILTER: Final = re.compile(r'filters(?:\[([0-9]{1,4})\])?\.(field|value)')
_LIMIT: Final = re.compile(r'[0-9]{1,20}')
_LARGEST_LIMIT: Final = 2**31 - 1  # the largest LIMIT of every database


def parse_query_string(
    query_string: str, names: Collection[str], filters: Collection[str] = ()
) -> dict[str, str]:
    """Return the arguments by name, and the filters by the name of their field.

    :param query_string: undecoded, as in the WSGI environment
    :param names: allowed arguments
    :param filters: fields that ``filters`` may name; empty: ``filters`` is unknown
    :raises InvalidInput: an argument is unknown, repeated or not UTF-8
    """
    arguments: dict[str, str] = {}
    filter_pairs: list[tuple[str, str]] = []
    for name, value in _split_pairs(query_string):
        if filters and _FILTER.fullmatch(name):
            filter_pairs.append((name, value))
        elif name in names:
            _add(arguments, name, value)
        else:
            raise InvalidInput(reason=f'Unknown query argument {format_value(name)}.')
    for field, value in _pair_filters(filter_pairs):
        if field not in filters:
            raise InvalidInput(reason=f'Unknown filter {format_value(field)}.')
        _add(arguments, field, value)
    return arguments


def _split_pairs(query_string: str) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query_string.encode('latin-1').decode('utf-8'),
            keep_blank_values=True,
            errors='strict',
            max_num_fields=_MAX_ELEMENTS,
        )
    except ValueError:
        reason = 'The query string is not UTF-8 or has too many arguments.'
        raise InvalidInput(reason=reason) from None


def _add(arguments: dict[str, str], name: str, value: str) -> None:
    if name in arguments and name == _REPEATABLE:
        value = f'{arguments[name]},{value}'
    elif name in arguments:
        raise InvalidInput(reason=f'The query argument {name} is repeated.')
    arguments[name] = value


def _pair_filters(pairs: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield field and value of each filter, matched by index or else by position."""
    filters: dict[str, dict[str, str]] = {}
    positions: Counter[str] = Counter()
    for name, text in pairs:
        index, _, side = name.removeprefix('filters').rpartition('.')
        if not index:
            index = str(positions[side])
            positions[side] += 1
        _add(filters.setdefault(index, {}), side, text)
    for pair in filters.values():
        if len(pair) != 2:
            raise InvalidInput(reason='Each filter needs a field and a value.')
        yield pair['field'], pair['value']


def build_query(
    arguments: dict[str, str],
    detailed: bool = False,
    /,
    **filters: tuple[str, ...] | None,
) -> Query:
    """Return the query for a page of a collection.

    :param detailed: also load the fields that microversion 2.4 shows
    :param filters: allowed values by the name of a field; None: no filter
    :raises InvalidInput: an argument of ``PAGING`` is invalid
    """
    direction = arguments.get('sort_dir', 'asc')
    if direction not in ('asc', 'desc'):
        raise InvalidInput(reason='sort_dir must be asc or desc.')
    return Query(
        filters={
            name: values for name, values in filters.items() if values is not None
        },
        limit=_parse_limit(arguments.get('limit')),
        marker=(
            parse_uuid('marker', arguments['marker']) if 'marker' in arguments else None
        ),
        sort_key=arguments.get('sort_key'),
        descending=direction == 'desc',
        detailed=detailed,
    )


def _parse_limit(text: str | None) -> int | None:
    if text is None:
        return None
    number = int(text) if _LIMIT.fullmatch(text) else 0
    if number < 1:
        raise InvalidInput(reason='limit must be a positive integer.')
    return min(number, _LARGEST_LIMIT)


def parse_words(
    arguments: Mapping[str, str], words: Mapping[str, type[enum.StrEnum]]
) -> dict[str, tuple[str, ...]]:
    """Return the elements of arguments that are lists of known words.

    :param words: the known words of each argument
    :raises InvalidInput: a list is empty, or a word is unknown
    """
    lists = {name: split_list(arguments[name]) for name in words if name in arguments}
    for name, elements in lists.items():
        vocabulary = [str(word) for word in words[name]]
        if not elements or not set(elements).issubset(vocabulary):
            raise InvalidInput(
                reason=f'{name} {format_value(arguments[name])} is unknown; known '
                f'values: {", ".join(vocabulary)}.'
            )
    return lists


def select_filters(
    arguments: Mapping[str, str], names: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Return a filter for each of the names that is an argument of the request."""
    return {name: (arguments[name],) for name in names if name in arguments}


def select_boolean_filters(
    arguments: dict[str, str], names: Collection[str]
) -> dict[str, tuple[str]]:
    """Return filters as ``select_filters`` does, for boolean fields.

    :raises InvalidInput: a value is neither true nor false
    """
    booleans = {name: arguments[name].lower() for name in names if name in arguments}
    for name, word in booleans.items():
        if word not in ('true', 'false'):
            raise InvalidInput(reason=f'{name} must be true or false.')
    return {name: (word,) for name, word in booleans.items()}


def select_prefix_filter(arguments: dict[str, str]) -> dict[str, tuple[str]]:
    """Return the filter for the start of the name, if the request has one.

    :raises InvalidInput: the text is empty, too long or cannot be part of a name
    """
    text = arguments.get(PREFIX)
    if text is None:
        return {}
    if not 1 <= len(text) <= LONGEST_PREFIX:
        raise InvalidInput(
            reason=f'{PREFIX} must have 1 to {LONGEST_PREFIX} characters.'
        )
    if not is_storable(text):
        raise InvalidInput(reason=f'{PREFIX} must be text without NUL characters.')
    return {PREFIX: (text,)}


def parse_uuid(name: str, text: str) -> str:
    """Return the UUID in lower case with hyphens.

    :param name: what the text stands for, as the subject of a sentence
    :raises InvalidInput: ``text`` is not a UUID
    """
    uuid = uuids.normalize_uuid(text)
    if uuid is None:
        raise InvalidInput(reason=f'{name} must be a UUID, not {format_value(text)}.')
    return uuid


def split_list(text: str) -> tuple[str, ...]:
    """Return the elements of a comma-separated list, without empty elements.

    :raises InvalidInput: the list has more elements than one SQL statement may bind
    """
    elements = tuple(word for item in text.split(',') if (word := item.strip()))
    if len(elements) > _MAX_ELEMENTS:
        raise InvalidInput(reason=f'A list may have at most {_MAX_ELEMENTS} elements.')
    return elements
