# SPDX-License-Identifier: Apache-2.0
"""Use of units as a billing service computes it from a stream of notifications."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Protocol


class Notification(Protocol):
    """A notification, stored or received."""

    @property
    def event_type(self) -> str:
        """Return the event type."""

    # Any: JSON.
    @property
    def payload(self) -> Any:
        """Return the payload."""


def rebuild_sums(
    notifications: Iterable[Notification], now: int
) -> dict[tuple[str, str, str], int]:
    """Return the milliseconds of use, as a billing service computes them."""
    sums: dict[tuple[str, str, str], int] = defaultdict(int)
    current: dict[str, tuple[tuple[str, str, str], int]] = {}
    for item in notifications:
        # Any: JSON.
        payload: Any = item.payload
        if not item.event_type.startswith('accelerator_request.'):
            continue
        key = tuple(
            payload[name] for name in ('project_id', 'resource_class', 'device_profile')
        )
        if item.event_type.endswith('.used'):
            current.pop(payload['uuid'], None)
            length = parse_ms(payload['ended_at']) - parse_ms(payload['started_at'])
            sums[key] += length
        elif payload['bound_at'] is not None and payload['resource_class']:
            current[payload['uuid']] = key, parse_ms(payload['bound_at'])
    for key, since in current.values():
        sums[key] += now - since
    return dict(sums)


def parse_ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
