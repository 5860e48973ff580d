# SPDX-License-Identifier: Apache-2.0
"""Stores host events until the conductor has acknowledged them.

Events are numbered. The conductor stores the last number that it received, so that an
event counts once even if it is sent several times.
"""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from oslo_log import log

from cyborg_lite.agent.state.state_file import StateFile
from cyborg_lite.model.hosts.events import HostEvent, HostEventKind
from cyborg_lite.model.limits import REASON_MAX_LENGTH

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A host event without a number."""

    kind: HostEventKind
    address: str
    arq_uuid: str | None = None  # None: the event concerns the device, not an ARQ
    reason: str = ''


@dataclass(frozen=True, slots=True)
class _Pages:
    last: int = 0  # number of the newest event
    joined: bool = False  # the conductor has sent the number to continue from
    events: tuple[HostEvent, ...] = ()


class Journal:
    """Unacknowledged host events, in memory and in ``journal.json``. Thread-safe.

    The oldest events are discarded when the capacity is exceeded.
    """

    def __init__(self, directory: Path, capacity: int = 1000) -> None:
        """Store the path. Call ``open`` to read the file.

        :param capacity: maximum number of stored events
        """
        self._file = StateFile(directory / 'journal.json', _Pages)
        self._capacity = capacity
        self._guard = threading.Lock()
        self._pages = _Pages()
        self._last_in_file = 0  # number of the newest event at the start
        self._is_synchronized = False  # True: the number of the conductor is read

    def open(self) -> None:
        """Read the events that an earlier process stored."""
        with self._guard:
            self._pages = self._file.read() or _Pages()
            self._last_in_file = self._pages.last

    def append(self, events: Iterable[NewEvent]) -> None:
        """Number the events in order, and store them on disk."""
        occurred_at = datetime.now(UTC)
        with self._guard:
            pages = self._pages
            numbered = tuple(
                HostEvent(
                    number,
                    event.kind,
                    event.address,
                    occurred_at,
                    event.arq_uuid,
                    event.reason[:REASON_MAX_LENGTH],
                )
                for number, event in enumerate(events, pages.last + 1)
            )
            if numbered:
                stored = self._trim((*pages.events, *numbered))
                last = pages.last + len(numbered)
                self._store(replace(pages, last=last, events=stored))

    def list_unsent(self, limit: int) -> Sequence[HostEvent]:
        """Return the oldest events that the conductor has not acknowledged."""
        return self._pages.events[:limit]

    def has_unsent(self, kind: HostEventKind, address: str) -> bool:
        """Check whether an event of a device was not acknowledged yet."""
        events = self._pages.events
        return any((item.kind, item.address) == (kind, address) for item in events)

    @property
    def is_joined(self) -> bool:
        """Synchronization with the event number of the conductor, True when complete.

        Before that no event may be sent: if the journal of the host was lost, or could
        not be written, the conductor would ignore new events with numbers that it
        received before.
        """
        return self._pages.joined and self._is_synchronized

    def acknowledge(self, last: int) -> None:
        """Remove the events up to a number, which the conductor has received.

        The first call renumbers the events that the conductor cannot have received, so
        that they follow ``last``.
        """
        with self._guard:
            pages = self._pages
            if not pages.joined:
                pages = _renumber(pages, 0, last)
            elif not self._is_synchronized and last > self._last_in_file:
                # An earlier process has sent events that it could not store.
                pages = _renumber(pages, self._last_in_file, last)
            self._is_synchronized = True
            unsent = tuple(event for event in pages.events if event.number > last)
            pages = _Pages(max(last, pages.last), True, unsent)
            if pages != self._pages:
                self._store(pages)

    def _trim(self, events: tuple[HostEvent, ...]) -> tuple[HostEvent, ...]:
        excess = len(events) - self._capacity
        if excess > 0:
            LOG.warning(
                'Discarded the %d oldest events: the conductor has not acknowledged '
                'them, and the journal is full',
                excess,
            )
        return events[max(0, excess) :]

    def _store(self, pages: _Pages) -> None:
        self._pages = pages
        self._file.write(pages)


def _renumber(pages: _Pages, number_in_file: int, last: int) -> _Pages:
    """Number the events after a number again, so that they follow ``last``."""
    earlier = tuple(event for event in pages.events if event.number <= number_in_file)
    later = tuple(
        replace(event, number=number)
        for number, event in enumerate(pages.events[len(earlier) :], last + 1)
    )
    return _Pages(last + len(later), True, (*earlier, *later))
