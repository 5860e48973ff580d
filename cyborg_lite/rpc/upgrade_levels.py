# SPDX-License-Identifier: Apache-2.0
"""Interface versions that calls may use while daemons of two releases run.

A daemon of this release calls no method that the other side lacks. Otherwise the result
would depend on which of several conductors receives the call.
"""

import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from oslo_log import log

from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.hosts.services import AGENT, CONDUCTOR

LOG = log.getLogger(__name__)

AUTO: Final = 'auto'

# Interface versions of the releases that may still run, oldest first.
_RELEASES: Final[tuple[tuple[str, Mapping[str, str]], ...]] = ()
_BINARIES: Final = {'conductor': CONDUCTOR, 'agent': AGENT}
_INTERVAL: Final = 60.0  # seconds between two reads of the versions
_RELEASE_NUMBER: Final = re.compile(r'(\d+)\.(\d+)\.(\d+)')

Versions = Callable[[], Iterable[tuple[str, str]]]
"""Returns binary and package version of each running daemon of another version."""


def parse_level(level: str) -> tuple[int, ...]:
    """Return an interface version such as ``1.2`` in a form that can be compared."""
    return tuple(int(number) for number in level.split('.'))


class Pins:
    """The highest interface version for each kind of server."""

    def __init__(
        self,
        levels: Mapping[str, str],
        read_versions: Versions,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        # By kind of server an interface version, or ``auto``: that of the oldest
        # running daemon.
        self._levels = levels
        self._read_versions = read_versions
        self._clock = clock
        self._lock = threading.Lock()
        self._read_at: float | None = None  # None: not read yet
        self._oldest: dict[str, str | None] = {}

    def find_level(self, kind: str) -> str | None:
        """Return the highest interface version to use; None: that of this release.

        :param kind: ``conductor`` or ``agent``
        """
        level = self._levels.get(kind, AUTO)
        if level != AUTO:
            return level
        with self._lock:
            now = self._clock()
            if self._read_at is None or now - self._read_at >= _INTERVAL:
                self._read_at = now
                self._refresh()
            return self._oldest.get(kind)

    def _refresh(self) -> None:
        try:
            daemons = tuple(self._read_versions())
        except CyborgError as error:
            LOG.debug('Versions of daemons not read: %s', error.text)
            return
        for kind, binary in _BINARIES.items():
            versions = [version for name, version in daemons if name == binary]
            level = find_lowest_level(kind, versions)
            if level != self._oldest.get(kind):
                LOG.info('Calls to each %s use version %s', kind, level or 'the newest')
            self._oldest[kind] = level


def find_lowest_level(kind: str, versions: Iterable[str]) -> str | None:
    """Return the interface version of the oldest daemon; None: that of this release.

    :param versions: package versions; unknown ones count as this release
    """
    levels = [
        level
        for version in versions
        if (level := _find_release_level(kind, version)) is not None
    ]
    return min(levels, key=parse_level, default=None)


def _find_release_level(kind: str, version: str) -> str | None:
    number = _read_number(version)
    for release, levels in _RELEASES:
        if number is not None and number <= (_read_number(release) or ()):
            return levels[kind]
    return None


def _read_number(version: str) -> tuple[int, ...] | None:
    match = _RELEASE_NUMBER.match(version)
    return tuple(map(int, match.groups())) if match else None
