# SPDX-License-Identifier: Apache-2.0
"""Heartbeats without news: answered at once, and written together.

Ten thousand hosts that say twice a minute that nothing is new would cost the database
some hundred transactions a second, each for one time of day.
"""

import threading
from typing import Final

from oslo_log import log

from cyborg_lite.db import heartbeats
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.services import Pulse

LOG = log.getLogger(__name__)

_PAUSE: Final = 1.0  # seconds between two writes; small beside any patience


class Pulses:
    """What the hosts said last, as far as the database was seen to hold it.

    Another conductor may change what the database holds. The next write finds that
    out, and the host is taken at its word no longer: the heartbeat after it is
    compared with the database as if it were the first.
    """

    def __init__(self, database: Database, stopping: threading.Event) -> None:
        self._database = database
        self._stopping = stopping
        self._lock = threading.Lock()
        self._known: dict[str, Pulse] = {}
        self._unwritten: dict[str, Pulse] = {}

    def keep(self, pulse: Pulse) -> None:
        """The database holds just this."""
        with self._lock:
            self._known[pulse.host] = pulse

    def beat(self, pulse: Pulse) -> bool:
        """True: it is known, and will be written. False: it may be news."""
        with self._lock:
            if self._known.get(pulse.host) != pulse:
                return False
            self._unwritten[pulse.host] = pulse
            return True

    def run(self) -> None:
        """Until it is told to stop, and then once more."""
        while not self._stopping.wait(_PAUSE):
            self._write_safely()
        self._write_safely()

    def write(self) -> None:
        """What was said since the last time.

        :raises CyborgError: the database does not answer; nobody is known any more, so
            that whoever speaks next hears of it
        """
        with self._lock:
            said, self._unwritten = self._unwritten, {}
        if not said:
            return
        still: set[str] = set()
        try:
            still = self._database.write(heartbeats.hear_again, said.values())
        finally:
            with self._lock:
                for host in said.keys() - still:
                    self._known.pop(host, None)

    def _write_safely(self) -> None:
        try:
            self.write()
        except CyborgError as error:
            LOG.error('Cannot write heartbeats: %s', error.text)
        except Exception:  # a mistake of ours must not end the loop
            LOG.exception('Cannot write heartbeats.')
