# SPDX-License-Identifier: Apache-2.0
"""Tests of the parser of query strings."""

from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cyborg_lite.api.call import arguments
from cyborg_lite.errors.base import InvalidInput

KNOWN = ('name', 'limit')


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


def test_build_query_large_limit_fits_databases() -> None:
    assert arguments.build_query({'limit': '9' * 20}).limit == 2**31 - 1


def test_build_query_omits_filters_of_none() -> None:
    assert arguments.build_query({}, a=(), b=None, c=('x',)).filters == {
        'a': (),
        'c': ('x',),
    }


@given(st.text(st.characters(max_codepoint=255)))
def test_parse_query_string_random_input_never_crashes(query: str) -> None:
    try:
        values = arguments.parse_query_string(query, KNOWN, ('a',))
    except InvalidInput:
        return
    assert set(values) <= {*KNOWN, 'a'}
