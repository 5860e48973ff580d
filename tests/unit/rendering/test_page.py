# SPDX-License-Identifier: Apache-2.0
"""Tests of the topology as an HTML page."""

from html.parser import HTMLParser

from cyborg_lite.rendering.page import format_page
from tests.builders.host_topologies import PROJECT, build_topology


class Elements(HTMLParser):
    """Collects the elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect an element."""
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        """Collect text."""
        self.texts.append(data)


def test_page_needs_no_other_file() -> None:
    page = format_page(build_topology())
    elements = Elements(page)
    assert page.startswith('<!DOCTYPE html>')
    assert elements.names.count('svg') == 1
    assert not {'script', 'link', 'img', 'iframe'} & set(elements.names)
    assert not {'src', 'href'} & set(elements.attributes)


def test_page_escapes_text() -> None:
    elements = Elements(format_page(build_topology()))
    assert '<script>alert("&\ufffd[31m")</script>' in elements.texts


def test_page_has_row_per_device_and_unit() -> None:
    elements = Elements(format_page(build_topology(30)))
    assert elements.names.count('tr') == 2 + 2 + 34
    assert PROJECT in elements.texts
