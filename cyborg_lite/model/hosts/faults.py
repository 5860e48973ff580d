# SPDX-License-Identifier: Apache-2.0
"""Faults of daemons."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple


class FaultKey(NamedTuple):
    """Identifies a fault."""

    kind: str  # a value of AttentionKind
    host: str  # [DEFAULT] host of the daemon; empty: not known
    name: str  # of the daemon


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a daemon that a conductor has seen."""

    kind: str
    host: str
    name: str
    reason: str
    since: datetime | None = field(default=None, compare=False)  # None: not stored yet
