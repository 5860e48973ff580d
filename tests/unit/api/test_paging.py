# SPDX-License-Identifier: Apache-2.0
"""Tests of the links to the next page."""

from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
from wsme import types

from cyborg_lite.api import paging
from cyborg_lite.api.microversion import V2_3, V2_4, Microversion
from cyborg_lite.model.queries import Query
from tests.support.api.calls import build_call

PAGE = [SimpleNamespace(uuid='a'), SimpleNamespace(uuid='b')]


def test_next_link_repeats_arguments_with_marker() -> None:
    call = build_call('/accelerator/v2/devices?limit=2&type=GPU', version=V2_4)
    call.parse_arguments(('limit', 'type', 'marker'), ())
    (link,) = paging.build_next_link(call, Query(limit=2), PAGE)
    assert link.rel == 'next'
    parts = urlsplit(link.href)
    assert parts.path.endswith('/v2/devices')
    assert parse_qs(parts.query) == {'limit': ['2'], 'type': ['GPU'], 'marker': ['b']}


def test_next_link_replaces_marker() -> None:
    call = build_call('/v2/devices?limit=2&marker=0', version=V2_4)
    call.parse_arguments(('limit', 'marker'), ())
    (link,) = paging.build_next_link(call, Query(limit=2, marker='0'), PAGE)
    assert parse_qs(urlsplit(link.href).query)['marker'] == ['b']


@pytest.mark.parametrize(
    ('version', 'limit'), [(V2_3, 2), (V2_4, 3), (V2_4, None)], ids=str
)
def test_next_link_last_page_or_old_version_is_missing(
    version: Microversion, limit: int | None
) -> None:
    call = build_call('/v2/devices', version=version)
    call.parse_arguments((), ())
    assert paging.build_next_link(call, Query(limit=limit), PAGE) is types.Unset
