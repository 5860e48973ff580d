# SPDX-License-Identifier: Apache-2.0
"""Tests of links in responses."""

from cyborg_lite.api.views.link import Link
from tests.builders.api_calls import LINKS, render


def test_self_link_has_url_of_path() -> None:
    (link,) = Link.build_self_links(LINKS, 'v2/devices/d')
    assert render(link) == {'href': 'http://api/v2/devices/d', 'rel': 'self'}
