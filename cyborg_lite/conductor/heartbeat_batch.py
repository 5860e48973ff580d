# SPDX-License-Identifier: Apache-2.0
"""Batched writes of heartbeats that carry no new information.

Each host sends two heartbeats per minute. With 10 000 hosts, one transaction for each
heartbeat would be more than 300 transactions per second that only update a time.
"""

import threading
from typing import Final

from oslo_log import log

from cyborg_lite.db import services
from cyborg_lite.db.engine import Database
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.services import Heartbeat

LOG = log.getLogger(__name__)

_WRITE_INTERVAL: Final = 1.0  # seconds; small compared with any `agent_down_after`


class HeartbeatBatch:
    """Remembers the stored heartbeat of each host and writes repetitions in batches.

    Another conductor may change the stored values. The next write detects the
    difference and forgets the host. The following heartbeat of that host is then
    compared with the database again.
    """

    def __init__(self, database: Database, stopping: threading.Event) -> None:
        self._database = database
        self._stopping = stopping
        self._lock = threading.Lock()
        self._stored: dict[str, Heartbeat] = {}  # by hostname
        self._unwritten: dict[str, Heartbeat] = {}  # by hostname

    def remember(self, heartbeat: Heartbeat) -> None:
        """Remember that the database has exactly these values for the host."""
        with self._lock:
            self._stored[heartbeat.host] = heartbeat

    def add(self, heartbeat: Heartbeat) -> bool:
        """Queue a heartbeat. Return False if it differs from the stored one."""
        with self._lock:
            if self._stored.get(heartbeat.host) != heartbeat:
                return False
            self._unwritten[heartbeat.host] = heartbeat
            return True

    def run(self) -> None:
        """Write batches until the stop event is set, then write once more."""
        while not self._stopping.wait(_WRITE_INTERVAL):
            self._write_and_log_errors()
        self._write_and_log_errors()

    def write(self) -> None:
        """Write the heartbeats received since the last call.

        :raises CyborgError: the database does not answer. All hosts of the batch are
            forgotten, so that their next heartbeat gets the same error.
        """
        with self._lock:
            batch, self._unwritten = self._unwritten, {}
        if not batch:
            return
        unchanged: set[str] = set()
        try:
            unchanged = self._database.write(
                services.record_repeated_heartbeats, batch.values()
            )
        finally:
            with self._lock:
                for host in batch.keys() - unchanged:
                    self._stored.pop(host, None)

    def _write_and_log_errors(self) -> None:
        try:
            self.write()
        except CyborgError as error:
            LOG.error('Writing a batch of agent heartbeats failed: %s', error.text)
        except Exception:  # a programming error must not end the thread
            LOG.exception('Writing a batch of agent heartbeats failed')
