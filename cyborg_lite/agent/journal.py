# SPDX-License-Identifier: Apache-2.0
"""What happened on the host, kept until the conductor has heard of it.

Events are numbered. The conductor keeps the number of the last one that it heard, so
that each counts once however often it is sent.
"""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from oslo_log import log

from cyborg_lite.agent.state_file import StateFile
from cyborg_lite.model.host_events import HostEvent, HostEventKind
from cyborg_lite.rpc import wire

LOG = log.getLogger(__name__)

_VERSION: Final = 1
_LONGEST_REASON: Final = 255


@dataclass(frozen=True, slots=True)
class News:
    """An event that has no number yet."""

    kind: HostEventKind
    address: str
    arq_uuid: str | None = None
    reason: str = ''


@dataclass(frozen=True, slots=True)
class _Pages:
    last: int = 0  # the number given last
    joined: bool = False  # whether the conductor has said where the numbers go on
    events: tuple[HostEvent, ...] = ()


class Journal:
    """Threads may share it. The oldest events go when there is no room."""

    def __init__(self, directory: Path, room: int = 1000) -> None:
        """:param room: events that wait for the conductor at most"""
        self._file = StateFile(directory / 'journal.json', _VERSION)
        self._room = room
        self._guard = threading.Lock()
        self._pages = _Pages()

    def open(self) -> None:
        """Read what an earlier process kept."""
        with self._guard:
            self._pages = self._file.read(_pages) or _Pages()

    def note(self, news: Iterable[News]) -> None:
        """In that order; written when it returns."""
        moment = datetime.now(UTC)
        with self._guard:
            pages = self._pages
            new = tuple(
                HostEvent(number, *_facts(each), moment, each.arq_uuid, each.reason)
                for number, each in enumerate(_bounded(news), pages.last + 1)
            )
            if new:
                events = self._trimmed((*pages.events, *new))
                self._keep(replace(pages, last=pages.last + len(new), events=events))

    def waiting(self, most: int) -> Sequence[HostEvent]:
        """The oldest that the conductor has not heard of."""
        return self._pages.events[:most]

    @property
    def joined(self) -> bool:
        """False: a conductor must be asked first what it has heard before.

        It may know of a host whose journal was lost, and would take new events for
        ones that it has heard already.
        """
        return self._pages.joined

    def heard(self, last: int) -> None:
        """A conductor has heard of all up to that number."""
        with self._guard:
            pages = self._pages
            if not pages.joined:
                events = tuple(
                    replace(event, number=number)
                    for number, event in enumerate(pages.events, last + 1)
                )
                self._keep(_Pages(last + len(events), True, events))
                return
            left = tuple(event for event in pages.events if event.number > last)
            if len(left) < len(pages.events) or last > pages.last:
                self._keep(_Pages(max(last, pages.last), True, left))

    def _trimmed(self, events: tuple[HostEvent, ...]) -> tuple[HostEvent, ...]:
        too_many = len(events) - self._room
        if too_many > 0:
            LOG.warning(
                'The conductor is away for too long: %d events forgotten.', too_many
            )
        return events[max(0, too_many) :]

    def _keep(self, pages: _Pages) -> None:
        self._pages = pages
        self._file.write(wire.dump(pages))


def _facts(news: News) -> tuple[HostEventKind, str]:
    return news.kind, news.address


def _bounded(news: Iterable[News]) -> list[News]:
    return [replace(each, reason=each.reason[:_LONGEST_REASON]) for each in news]


# Any: JSON that was read from a file.
def _pages(said: Any) -> _Pages:
    return wire.load(_Pages, said)
