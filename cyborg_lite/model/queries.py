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


_TIMES: Final = ('created_at', 'updated_at')
SORT_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    'accelerator_requests': (
        *('uuid', 'state', 'hostname', 'instance_uuid', 'device_profile_name'),
        *_TIMES,
    ),
    'attributes': ('uuid', 'deployable_id', 'key', *_TIMES),
    'bitstreams': ('image_uuid', 'image_name', 'size'),
    'deployables': ('uuid', 'name', 'num_accelerators', 'driver_name', *_TIMES),
    'device_profiles': (
        *('uuid', 'name', 'description', 'enabled', 'is_public'),
        *_TIMES,
    ),
    'devices': ('uuid', 'type', 'vendor', 'model', 'hostname', 'status', *_TIMES),
    'hosts': ('name',),
    'operations': ('uuid', 'kind', 'state', 'project_id', 'created_at'),
    'services': (
        *('uuid', 'hostname', 'binary', 'state'),
        *('started_at', 'heartbeat_at'),
    ),
    'usages': ('project_id', 'resource_class', 'device_profile_name', 'unit_hours'),
}
"""Fields by which clients may sort a list, by the last word of its path."""

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
