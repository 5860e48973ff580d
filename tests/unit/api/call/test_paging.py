# SPDX-License-Identifier: Apache-2.0
"""Tests of the links to the next page."""

from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from wsme import types

from cyborg_lite.api.call import paging
from cyborg_lite.api.microversion import V2_4, V2_5, Microversion
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model import cursors
from cyborg_lite.model.cursors import Cursor
from cyborg_lite.model.queries import Page, Query
from tests.support.api.calls import build_call

PAGE = [SimpleNamespace(uuid='a'), SimpleNamespace(uuid='b')]


UUID = '00000000-0000-4000-8000-00000000000a'
CURSOR = cursors.encode(Cursor('devices', None, False, None, 7))


def _build_query(marker: str | None, version: Microversion, limit: str = '2') -> Query:
    call = build_call('/v2/devices', version=version)
    values = {'limit': limit, 'marker': marker}
    call.arguments = {name: text for name, text in values.items() if text}
    return paging.build_query(call, model=None)


@pytest.mark.parametrize(
    ('marker', 'fields'),
    [
        (None, {}),
        (UUID.upper(), {'marker': UUID}),
        (CURSOR, {'cursor': CURSOR}),
    ],
)
def test_query_has_cursor_or_uuid(marker: str | None, fields: dict[str, Any]) -> None:
    query = _build_query(marker, V2_5)
    assert query == Query(limit=2, needs_cursor=True, **fields)


def test_query_without_limit_needs_no_cursor() -> None:
    assert _build_query(None, V2_5, limit='') == Query()


def test_query_of_old_version_has_no_cursor() -> None:
    assert _build_query(UUID, V2_4) == Query(limit=2, marker=UUID)
    with pytest.raises(InvalidInput, match='marker must be a UUID, not'):
        _build_query(CURSOR, V2_4)


@pytest.mark.parametrize('marker', ['x', UUID[:-1], '{' + UUID + '}', 'W10'])
def test_query_malformed_marker_is_refused(marker: str) -> None:
    with pytest.raises(InvalidInput, match='marker must be a UUID or'):
        _build_query(marker, V2_5)


def _read_marker(page: Any, limit: int = 2) -> list[str] | None:
    call = build_call('/v2/devices?limit=2', version=V2_5)
    call.parse_arguments(('limit',), ())
    links = paging.build_next_link(call, Query(limit=limit), page)
    if links is types.Unset:
        return None
    return parse_qs(urlsplit(links[0]['href']).query)['marker']


def test_next_link_has_cursor_of_page() -> None:
    assert _read_marker(Page.build(PAGE, 'cursor')) == ['cursor']


def test_next_link_without_cursor_has_uuid() -> None:
    """A value may be too long, and a conductor of an earlier release has no cursor."""
    assert _read_marker(Page.build(PAGE, None)) == ['b']
    assert _read_marker(tuple(PAGE)) == ['b']
    assert _read_marker(Page.build(PAGE, None), limit=3) is None


def test_next_link_of_page_with_hidden_records_remains() -> None:
    """The conductor may remove records from a full page."""
    assert _read_marker(Page.build(PAGE, 'cursor'), limit=3) == ['cursor']
