# SPDX-License-Identifier: Apache-2.0
"""Filter, order and page of a list; the same for every collection."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Query:
    """Selection of rows. All filters must match; of one filter any value may match."""

    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limit: int | None = None  # None: no limit
    marker: str | None = None  # uuid of the last row of the previous page
    sort_key: str | None = None  # None: in the order of creation
    descending: bool = False
    detailed: bool = False  # True: include values that are expensive to read
