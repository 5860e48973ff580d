# SPDX-License-Identifier: Apache-2.0
"""Tests of the parser of query strings."""

from urllib.parse import urlencode

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
