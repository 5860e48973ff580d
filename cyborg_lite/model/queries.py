# SPDX-License-Identifier: Apache-2.0
"""Filter, order and page of a list; the same for every collection."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self, TypeVar

T = TypeVar('T')


@dataclass(frozen=True, slots=True)
class Query:
    """Selection of rows. All filters must match; of one filter any value may match."""

    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limit: int | None = None  # None: no limit
    marker: str | None = None  # uuid of the last row of the previous page
    sort_key: str | None = None  # None: in the order of creation
    descending: bool = False
    detailed: bool = False  # True: include values that are expensive to read
    cursor: str | None = None  # position of that row, instead of its uuid
    needs_cursor: bool = False  # True: the result is a `Page`
    brief: bool = False  # True: omit the attributes of deployables


LATEST_FIRST: Final = Query(descending=True)


class Page(tuple[T, ...]):
    """A page of a list, with the cursor of the last record."""

    cursor: str | None = None  # None: the list has no next page, or no cursor

    @classmethod
    def build(cls, records: Iterable[T], cursor: str | None) -> Self:
        """Return the page."""
        page = cls(records)
        page.cursor = cursor
        return page


def replace_records(page: tuple[T, ...], records: Iterable[T]) -> tuple[T, ...]:
    """Return other records of the same page, with its cursor if it has one."""
    if isinstance(page, Page):
        return Page.build(records, page.cursor)
    return tuple(records)
