# SPDX-License-Identifier: Apache-2.0
"""Query strings are understood whole, or refused."""

from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite.api import arguments
from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.queries import Query

KNOWN = ('name', 'limit')
UUID = 'd5ca2f11-3108-4426-a11c-a959987565df'


@given(st.dictionaries(st.sampled_from(KNOWN), st.text()))
def test_known_arguments_are_read_as_they_were_meant(given_: dict[str, str]) -> None:
    assert arguments.read(urlencode(given_), KNOWN) == given_


def test_raw_bytes_are_utf8_too() -> None:
    as_wsgi_has_it = 'name=\u00fc'.encode().decode('latin-1')
    assert arguments.read(as_wsgi_has_it, KNOWN) == {'name': '\u00fc'}


@pytest.mark.parametrize(
    ('query', 'found'),
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
def test_queries_that_servers_see(query: str, found: dict[str, str]) -> None:
    assert arguments.read(query, KNOWN) == found


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
def test_a_wrong_query_is_refused(query: str) -> None:
    with pytest.raises(InvalidInput):
        arguments.read(query, KNOWN)


@given(st.lists(st.tuples(st.sampled_from(['a', 'b', 'c']), st.text()), unique_by=min))
def test_filters_are_paired_by_position_or_by_number(
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
        assert arguments.read(query, (), ('a', 'b', 'c')) == dict(pairs)


@pytest.mark.parametrize(
    ('found', 'query'),
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
def test_paging_becomes_a_query(found: dict[str, str], query: Query) -> None:
    assert arguments.query(found, name=None) == query


@pytest.mark.parametrize(
    'found',
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
def test_wrong_paging_is_refused(found: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(found))):
        arguments.query(found)


def test_filters_without_a_value_are_kept_and_none_is_left_out() -> None:
    assert arguments.query({}, a=(), b=None, c=('x',)).filters == {'a': (), 'c': ('x',)}


@pytest.mark.parametrize(
    ('text', 'elements'),
    [('', ()), (',', ()), ('a', ('a',)), (' a ,,b,', ('a', 'b')), ('a,a', ('a', 'a'))],
)
def test_lists_are_parted_by_commas(text: str, elements: tuple[str, ...]) -> None:
    assert arguments.listed(text) == elements


def test_a_list_has_an_end() -> None:
    assert len(arguments.listed('a,' * 1000)) == 1000
    with pytest.raises(InvalidInput):
        arguments.listed('a,' * 1001)


@given(st.text(st.characters(max_codepoint=255)))
def test_any_query_string_is_read_or_refused(query: str) -> None:
    try:
        found = arguments.read(query, KNOWN, ('a',))
    except InvalidInput:
        return
    assert set(found) <= {*KNOWN, 'a'}
