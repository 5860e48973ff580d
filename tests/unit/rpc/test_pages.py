# SPDX-License-Identifier: Apache-2.0
"""Tests of pages in messages, between daemons of this and of an earlier release."""

import functools
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from cyborg_lite.exceptions import MalformedMessage
from cyborg_lite.model.devices import Attribute
from cyborg_lite.model.queries import Page, Query
from cyborg_lite.rpc import compression, pages, wire
from cyborg_lite.rpc.conductor import ConductorAPI
from cyborg_lite.rpc.context import RequestContext

RECORDS = (Attribute('u', 1, 'key', 'value', datetime(2026, 11, 21, tzinfo=UTC)),)
LOAD = functools.partial(wire.load_all, Attribute)


def carry(answer: Any) -> Any:
    """Return an answer as the API receives it."""
    return json.loads(json.dumps(answer))


@pytest.mark.parametrize('cursor', ['W10', None])
def test_page_keeps_cursor(cursor: str | None) -> None:
    answer = carry(pages.dump_page(Page.build(RECORDS, cursor)))
    loaded = pages.load_page(answer, LOAD)
    assert isinstance(loaded, Page)
    assert (loaded, loaded.cursor) == (RECORDS, cursor)


def test_packed_page_keeps_cursor() -> None:
    dump = functools.partial(compression.dump_list, Attribute)
    answer = carry(pages.dump_page(Page.build(RECORDS, 'W10'), dump))
    load = functools.partial(compression.load_list, Attribute)
    loaded = pages.load_page(answer, load)
    assert isinstance(loaded, Page)
    assert (loaded, loaded.cursor) == (RECORDS, 'W10')


def test_records_without_cursor_are_as_before() -> None:
    answer = pages.dump_page(RECORDS)
    assert answer == wire.dump(RECORDS)
    assert type(pages.load_page(answer, LOAD)) is tuple


@pytest.mark.parametrize(
    'answer', [{}, {'cursor': 5, 'records': []}, {'cursor': None, 'records': {}}]
)
def test_malformed_page_is_refused(answer: Any) -> None:
    with pytest.raises(MalformedMessage):
        pages.load_page(answer, LOAD)


class Conductor:
    """Conductor whose methods return the same answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def call(self, *_arguments: Any, **_keywords: Any) -> Any:
        return self.answer


@pytest.mark.parametrize(
    'method',
    [
        'list_arqs',
        'list_attributes',
        'list_deployables',
        'list_device_profiles',
        'list_devices',
        'list_jobs',
        'list_services',
    ],
)
@pytest.mark.parametrize('is_earlier', [False, True])
def test_each_list_has_cursor_of_page(
    monkeypatch: pytest.MonkeyPatch, method: str, is_earlier: bool
) -> None:
    """A conductor of an earlier release answers with records alone."""
    answer = [] if is_earlier else {'cursor': 'W10', 'records': []}
    monkeypatch.setattr(
        'cyborg_lite.rpc.conductor.Caller', lambda *_arguments: Conductor(answer)
    )
    query = Query(filters={'uuid': ('u',)}, limit=2, needs_cursor=True)
    page = getattr(ConductorAPI(None), method)(RequestContext(), query)
    assert page == ()
    assert getattr(page, 'cursor', None) == (None if is_earlier else 'W10')
