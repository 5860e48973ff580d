# SPDX-License-Identifier: Apache-2.0
"""Pages of lists in messages: the records, and the cursor of the last one.

Only a query that needs a cursor gets such an answer. A conductor of an earlier release
ignores the need and answers with the records alone.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from cyborg_lite.exceptions import MalformedMessage
from cyborg_lite.model.queries import Page
from cyborg_lite.rpc import wire

T = TypeVar('T')

_CURSOR: Final = 'cursor'
_RECORDS: Final = 'records'


# Any, here and below: a JSON value.
def dump_page(
    records: tuple[T, ...], dump: Callable[[tuple[T, ...]], Any] = wire.dump
) -> Any:
    """Return the records, and the cursor if they are a page that has one.

    :param dump: converts the records
    """
    if not isinstance(records, Page):
        return dump(records)
    return {_CURSOR: records.cursor, _RECORDS: dump(records)}


def load_page(answer: Any, load: Callable[[Any], tuple[T, ...]]) -> tuple[T, ...]:
    """Return the records of an answer, as a ``Page`` if it has a cursor.

    :param load: converts the records
    :raises MalformedMessage: the cursor is not text, or ``load`` raises it
    """
    if not isinstance(answer, dict):
        return load(answer)
    cursor = answer.get(_CURSOR)
    if cursor is not None and not isinstance(cursor, str):
        raise MalformedMessage(reason='a cursor is not text')
    return Page.build(load(answer.get(_RECORDS)), cursor)
