# SPDX-License-Identifier: Apache-2.0
"""Tests of pages of lists."""

from cyborg_lite.model.queries import Page, replace_records


def test_page_is_tuple_with_cursor() -> None:
    page = Page.build(iter('ab'), 'cursor')
    assert [*page, page.cursor] == ['a', 'b', 'cursor']


def test_replace_records_keeps_cursor() -> None:
    replaced = replace_records(Page.build('ab', 'cursor'), 'c')
    assert isinstance(replaced, Page)
    assert [*replaced, replaced.cursor] == ['c', 'cursor']


def test_replace_records_of_tuple_is_tuple() -> None:
    assert type(replace_records(('a',), 'b')) is tuple
