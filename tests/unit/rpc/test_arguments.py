# SPDX-License-Identifier: Apache-2.0
"""Tests of arguments and answers in messages: lists, pages and compression."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from cyborg_lite.errors.daemons import MalformedData
from cyborg_lite.model.devices.devices import Attribute
from cyborg_lite.model.inventory.report_changes import ReportChanges, diff_reports
from cyborg_lite.model.queries import Page
from cyborg_lite.rpc import arguments
from tests.builders.reports import card, report

RECORD = Attribute('u', 1, 'key', 'value', datetime(2026, 11, 21, tzinfo=UTC))
LIST = tuple[Attribute, ...]
LONG = (RECORD,) * 100


# Any, here and below: values of any class, and JSON values.
def carry(annotation: Any, answer: Any) -> Any:
    """Return an answer as the caller receives it."""
    data = json.loads(json.dumps(arguments.dump_answer(annotation, answer)))
    return arguments.load_answer(annotation, data)


def test_long_list_of_records_is_compressed() -> None:
    text = arguments.dump_answer(LIST, LONG)
    assert isinstance(text, str)
    assert len(text) < 1000


@pytest.mark.parametrize('records', [(RECORD,), LONG])
@pytest.mark.parametrize('cursor', ['W10', None])
def test_page_keeps_its_cursor(
    records: tuple[Attribute, ...], cursor: str | None
) -> None:
    loaded = carry(LIST, Page.build(records, cursor))
    assert isinstance(loaded, Page)
    assert (loaded, loaded.cursor) == (records, cursor)


def test_list_without_cursor_is_no_page() -> None:
    assert type(carry(LIST, (RECORD,))) is tuple


@pytest.mark.parametrize(
    'answer',
    [{}, {'cursor': 5, 'records': []}, {'cursor': None, 'records': {}}, 'text', 7],
)
def test_malformed_list_is_refused(answer: Any) -> None:
    with pytest.raises(MalformedData):
        arguments.load_answer(LIST, answer)


def test_compressed_argument_arrives_unchanged() -> None:
    changes = diff_reports(report(*map(card, range(8))))
    data = arguments.dump_argument(changes, is_compressed=True)
    assert isinstance(data, str)
    loaded = arguments.load_argument(ReportChanges, data, is_compressed=True)
    assert loaded == changes
    assert arguments.dump_argument('host', is_compressed=True) == 'host'
    assert arguments.load_argument(str, 'host', is_compressed=True) == 'host'


def test_compressed_answer_is_limited() -> None:
    data = arguments.dump_answer(LIST, LONG)
    assert arguments.load_answer(LIST, data, max_size=100_000) == LONG
    with pytest.raises(MalformedData, match='too long'):
        arguments.load_answer(LIST, data, max_size=1000)
