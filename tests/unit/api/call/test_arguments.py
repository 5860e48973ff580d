# SPDX-License-Identifier: Apache-2.0
"""Tests of the parser of query strings."""

from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite.api.call import arguments
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.queries import Query

KNOWN = ('name', 'limit')
UUID = 'd5ca2f11-3108-4426-a11c-a959987565df'


@given(st.dictionaries(st.sampled_from(KNOWN), st.text()))
def test_parse_query_string_returns_arguments(values: dict[str, str]) -> None:
    assert arguments.parse_query_string(urlencode(values), KNOWN) == values


def test_parse_query_string_decodes_utf8() -> None:
    as_wsgi_has_it = 'name=\u00fc'.encode().decode('latin-1')
    assert arguments.parse_query_string(as_wsgi_has_it, KNOWN) == {'name': '\u00fc'}


@pytest.mark.parametrize(
    ('query', 'values'),
    [
        ('', {}),
        ('&&', {}),
        ('name', {'name': ''}),
        ('name=', {'name': ''}),
        ('name=a=b', {'name': 'a=b'}),
        ('name=a+b', {'name': 'a b'}),
        ('name=a;limit=5', {'name': 'a;limit=5'}),
        ('n%61me=x', {'name': 'x'}),
    ],
)
def test_parse_query_string_accepts_client_notations(
    query: str, values: dict[str, str]
) -> None:
    assert arguments.parse_query_string(query, KNOWN) == values


@pytest.mark.parametrize(
    'query',
    [
        'Name=x',
        'name =x',
        '=x',
        'name=a&name=b',
        'name=%ff',
        'name=\xff',
        '%ff=x',
        'name=%ed%a0%80',
        '&'.join(['limit'] * 1001),
        'filters.field=name&filters.value=x',
    ],
)
def test_parse_query_string_invalid_is_refused(query: str) -> None:
    with pytest.raises(InvalidInput):
        arguments.parse_query_string(query, KNOWN)


@given(st.lists(st.tuples(st.sampled_from(['a', 'b', 'c']), st.text()), unique_by=min))
def test_filters_are_paired_by_position_or_index(
    pairs: list[tuple[str, str]],
) -> None:
    pairs = list(dict(pairs).items())
    plain = '&'.join(
        f'filters.field={quote(field)}&filters.value={quote(value)}'
        for field, value in pairs
    )
    numbered = '&'.join(
        f'filters[{index}].value={quote(value)}&filters[{index}].field={field}'
        for index, (field, value) in enumerate(pairs)
    )
    for query in (plain, numbered):
        assert arguments.parse_query_string(query, (), ('a', 'b', 'c')) == dict(pairs)


@pytest.mark.parametrize(
    ('values', 'query'),
    [
        ({}, Query()),
        ({'limit': '5'}, Query(limit=5)),
        ({'limit': '05'}, Query(limit=5)),
        ({'limit': '9' * 20}, Query(limit=2**31 - 1)),
        ({'marker': UUID.upper()}, Query(marker=UUID)),
        ({'sort_key': 'name'}, Query(sort_key='name')),
        ({'sort_dir': 'asc'}, Query()),
        ({'sort_dir': 'desc'}, Query(descending=True)),
    ],
)
def test_build_query_has_paging(values: dict[str, str], query: Query) -> None:
    assert arguments.build_query(values, name=None) == query


@pytest.mark.parametrize(
    'values',
    [
        {'limit': ''},
        {'limit': '0'},
        {'limit': '-1'},
        {'limit': '1.0'},
        {'limit': '1e3'},
        {'limit': ' 1'},
        {'limit': '\u0663'},
        {'limit': '9' * 5000},
        {'marker': 'x'},
        {'sort_dir': 'DESC'},
    ],
)
def test_build_query_invalid_paging_is_refused(values: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(values))):
        arguments.build_query(values)


def test_build_query_omits_filters_of_none() -> None:
    assert arguments.build_query({}, a=(), b=None, c=('x',)).filters == {
        'a': (),
        'c': ('x',),
    }


@pytest.mark.parametrize(
    ('text', 'elements'),
    [('', ()), (',', ()), ('a', ('a',)), (' a ,,b,', ('a', 'b')), ('a,a', ('a', 'a'))],
)
def test_split_list_separates_by_commas(text: str, elements: tuple[str, ...]) -> None:
    assert arguments.split_list(text) == elements


def test_split_list_too_long_is_refused() -> None:
    assert len(arguments.split_list('a,' * 1000)) == 1000
    with pytest.raises(InvalidInput):
        arguments.split_list('a,' * 1001)


@given(st.text(st.characters(max_codepoint=255)))
def test_parse_query_string_random_input_never_crashes(query: str) -> None:
    try:
        values = arguments.parse_query_string(query, KNOWN, ('a',))
    except InvalidInput:
        return
    assert set(values) <= {*KNOWN, 'a'}


def test_select_prefix_filter_checks_length() -> None:
    select = arguments.select_prefix_filter
    assert select({}, 3) == {}
    assert select({'name_prefix': 'abc'}, 3) == {'name_prefix': ('abc',)}
    for text in ('', 'abcd', '\0'):
        with pytest.raises(InvalidInput, match='name_prefix must'):
            select({'name_prefix': text}, 3)
