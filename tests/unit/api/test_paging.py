# SPDX-License-Identifier: Apache-2.0
"""A page that is full says where the next one is."""

from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
from wsme import types

from cyborg_lite.api import paging
from cyborg_lite.api.microversion import V2_3, V2_4, Microversion
from cyborg_lite.model.queries import Query
from tests.unit.api.calls import call

PAGE = [SimpleNamespace(uuid='a'), SimpleNamespace(uuid='b')]


def test_the_link_repeats_the_question_from_the_last_one_on() -> None:
    asked = call('/accelerator/v2/devices?limit=2&type=GPU', version=V2_4)
    asked.read_arguments(('limit', 'type', 'marker'), ())
    (link,) = paging.next_page(asked, Query(limit=2), PAGE)
    assert link.rel == 'next'
    parts = urlsplit(link.href)
    assert parts.path.endswith('/v2/devices')
    assert parse_qs(parts.query) == {'limit': ['2'], 'type': ['GPU'], 'marker': ['b']}


def test_the_marker_of_this_page_is_not_that_of_the_next() -> None:
    asked = call('/v2/devices?limit=2&marker=0', version=V2_4)
    asked.read_arguments(('limit', 'marker'), ())
    (link,) = paging.next_page(asked, Query(limit=2, marker='0'), PAGE)
    assert parse_qs(urlsplit(link.href).query)['marker'] == ['b']


@pytest.mark.parametrize(
    ('version', 'limit'), [(V2_3, 2), (V2_4, 3), (V2_4, None)], ids=str
)
def test_nothing_follows_the_last_page_or_for_older_clients(
    version: Microversion, limit: int | None
) -> None:
    asked = call('/v2/devices', version=version)
    asked.read_arguments((), ())
    assert paging.next_page(asked, Query(limit=limit), PAGE) is types.Unset
