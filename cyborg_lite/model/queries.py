# SPDX-License-Identifier: Apache-2.0
"""What part of a collection a client wants, the same for every collection."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Query:
    """All filters must fit; of one filter's values any may."""

    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    limit: int | None = None  # None: all
    marker: str | None = None  # uuid of the last one already seen
    sort_key: str | None = None  # None: in the order of creation
    descending: bool = False
    detailed: bool = False  # also what costs more to find, and few clients read
