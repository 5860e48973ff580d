# SPDX-License-Identifier: Apache-2.0
"""Tests of views with some of their fields."""

from wsme.rest.json import tojson

from cyborg_lite.api.views.link import Link
from cyborg_lite.api.views.selection import select_content, select_view


def test_select_content_keeps_requested_fields() -> None:
    content = {'uuid': 1, 'name': 2, 'links': 3}
    fields = frozenset({'name', 'links', 'other'})
    assert select_content(content, fields) == {'name': 2, 'links': 3}
    assert select_content(content, None) is content


def test_select_view_omits_fields() -> None:
    view = select_view(Link(href='http://a', rel='self'), frozenset({'rel'}))
    assert tojson(Link, view) == {'rel': 'self'}
    complete = select_view(Link(href='http://a', rel='self'), None)
    assert tojson(Link, complete) == {'href': 'http://a', 'rel': 'self'}
