# SPDX-License-Identifier: Apache-2.0
"""Batched writes of heartbeats that carry no new information.

Each host sends two heartbeats per minute. With 10 000 hosts, one transaction for each
heartbeat would be more than 300 transactions per second that only update a time.
"""

import threading
from collections.abc import Mapping
from typing import Final

from cyborg_lite.conductor.periodic import attempt, repeat
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices.devices import store_telemetry
from cyborg_lite.db.hosts import services
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.hosts.services import Heartbeat

Telemetry = Mapping[str, Usage]  # by control address

_NO_TELEMETRY: Final[Telemetry] = {}
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
        self._tokens: dict[str, str] = {}  # of the stored heartbeats, by hostname
        self._unwritten: dict[str, Heartbeat] = {}  # by hostname
        self._telemetry: dict[str, dict[str, Usage]] = {}  # by hostname and address

    def remember(self, heartbeat: Heartbeat) -> None:
        """Remember that the database has exactly these values for the host."""
        with self._lock:
            self._stored[heartbeat.host] = heartbeat
            self._tokens[heartbeat.host] = heartbeat.token

    def add(self, heartbeat: Heartbeat, telemetry: Telemetry = _NO_TELEMETRY) -> bool:
        """Queue a heartbeat. Return False if it differs from the stored one."""
        with self._lock:
            if self._stored.get(heartbeat.host) != heartbeat:
                return False
            self._queue(heartbeat, telemetry)
            return True

    def repeat(
        self, host: str, token: str, telemetry: Telemetry = _NO_TELEMETRY
    ) -> bool:
        """Queue the stored heartbeat of a host again.

        :param token: of the heartbeat
        :returns: False if it is not the token of the stored heartbeat
        """
        with self._lock:
            if self._tokens.get(host) != token:
                return False
            self._queue(self._stored[host], telemetry)
            return True

    def _queue(self, heartbeat: Heartbeat, telemetry: Telemetry) -> None:
        """Queue a heartbeat. The caller holds the lock."""
        self._unwritten[heartbeat.host] = heartbeat
        if telemetry:
            self._telemetry.setdefault(heartbeat.host, {}).update(telemetry)

    def run(self) -> None:
        """Write batches until the stop event is set, then write once more."""
        subject = 'Writing a batch of agent heartbeats'
        repeat(self.write, subject, lambda: _WRITE_INTERVAL, self._stopping)
        attempt(self.write, subject)

    def write(self) -> None:
        """Write the heartbeats received since the last call.

        :raises CyborgError: the database does not answer. All hosts of the batch are
            forgotten, so that their next heartbeat gets the same error, and their
            agents send all telemetry again.
        """
        with self._lock:
            batch, self._unwritten = self._unwritten, {}
            telemetry, self._telemetry = self._telemetry, {}
        if not batch:
            return
        unchanged: set[str] = set()
        try:
            unchanged = self._database.write(
                services.record_repeated_heartbeats, batch.values()
            )
            if telemetry:
                self._database.write(store_telemetry, telemetry)
        except BaseException:
            unchanged = set()
            raise
        finally:
            with self._lock:
                for host in batch.keys() - unchanged:
                    self._stored.pop(host, None)
                    self._tokens.pop(host, None)
