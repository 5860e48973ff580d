# SPDX-License-Identifier: Apache-2.0
"""Sends the heartbeats of a host in the shortest form that the conductor accepts.

A whole heartbeat has all values. A short heartbeat has a token in their place, if they
have not changed. The conductor answers every second short heartbeat only: an answer is
half of the work of an RPC. A lost heartbeat without an answer stays unnoticed until the
next one. `agent_down_after` is above three intervals, so that several further attempts
follow before the host counts as down.
"""

import platform
from collections.abc import Callable, Mapping
from typing import Final

from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.inventory.telemetry import TelemetryCollector
from cyborg_lite.agent.state.remembered_mark import RememberedMark
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.hosts.services import Heartbeat, HeartbeatDetails
from cyborg_lite.rpc.context import bare_context, daemon_context
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.version import VERSION

_SHORTEST_TIMEOUT: Final = 1.0  # seconds
# A message to a conductor that has died gets no reply. Several heartbeats must fit into
# `agent_down_after`, which is above three intervals.
_HEARTBEATS_PER_INTERVAL: Final = 3
_MAX_MACHINE: Final = 64  # characters
_MAX_SHORT: Final = 20  # short heartbeats after a whole heartbeat


class HeartbeatSender:
    """Sends the heartbeats of one host. Not thread-safe."""

    def __init__(  # noqa: PLR0913  # all are parts of an agent
        self,
        discovery: Discovery,
        telemetry: TelemetryCollector,
        identity: str,
        remembered: RememberedMark,
        # connect: returns a client whose calls wait that many seconds.
        connect: Callable[[float], Conductor],
        interval: float,  # seconds between two heartbeats
    ) -> None:
        self._discovery = discovery
        self._telemetry = telemetry
        self._identity = identity  # of the agent
        self._remembered = remembered
        timeout = max(_SHORTEST_TIMEOUT, interval / _HEARTBEATS_PER_INTERVAL)
        self._conductor = connect(timeout)
        self._is_start_reported = False
        # The last whole heartbeat. None: the next heartbeat must be whole.
        self._heartbeat: Heartbeat | None = None
        self._short_heartbeats = 0  # since the last whole heartbeat
        self._is_short_accepted = False  # True: conductors accept short heartbeats
        self._is_answer_required = True  # to the next short heartbeat
        # Values that a conductor has acknowledged, by control address.
        self.known_usages: dict[str, Usage] = {}

    def send(self, digest: str, *, is_reported: bool) -> bool:
        """Send a heartbeat. Return True if the conductor requires the host report.

        Telemetry that is read now is sent with the next heartbeat.

        :param digest: of the current host report
        :param is_reported: False: no report was sent yet, so telemetry is not sent
        :raises CyborgError: no conductor answered, or it refused the heartbeat
        """
        host = self._discovery.host
        heartbeat = Heartbeat(host.name, VERSION, digest, host.boot_id, self._identity)
        usages = {
            address: usage
            for address, usage in self._telemetry.usages.items()
            if is_reported and self.known_usages.get(address) != usage
        }
        # Without an answer it is unknown which values are stored; send these again.
        for address in usages:
            self.known_usages.pop(address, None)
        needs_report = False
        if not self._send_short(heartbeat, usages):
            if is_reported and self._is_short_accepted:
                # A conductor that does not know the host may have lost telemetry.
                usages = dict(self._telemetry.usages)
            needs_report = self._send_whole(heartbeat, usages)
        self._telemetry.start_reading(self._discovery.results)
        return needs_report

    def report_stop(self) -> None:
        """Tell the conductor that the agent stops.

        :raises CyborgError: no conductor answered
        """
        host = self._discovery.host.name
        self._conductor.report_stop(daemon_context(), host, self._identity)

    def _send_short(self, heartbeat: Heartbeat, usages: Mapping[str, Usage]) -> bool:
        """Send a short heartbeat. Return False if a whole heartbeat must be sent.

        After ``_MAX_SHORT`` short heartbeats a whole heartbeat is sent. It has all
        telemetry: a conductor that is killed may not have written all values.
        """
        self._short_heartbeats += 1
        if heartbeat != self._heartbeat or self._short_heartbeats > _MAX_SHORT:
            return False
        arguments = bare_context(), heartbeat.host, heartbeat.token, usages
        if not self._is_answer_required:
            self._is_answer_required = True
            self._conductor.repeat_without_answer(*arguments)
            return True
        mark = self._conductor.repeat(*arguments)
        if mark is None:
            return False
        self._remembered.remember(mark)
        self._is_short_accepted = True
        self._is_answer_required = False
        self.known_usages |= usages
        return True

    def _send_whole(self, heartbeat: Heartbeat, usages: Mapping[str, Usage]) -> bool:
        """Send a whole heartbeat. Return True if the host report is required."""
        self._short_heartbeats = 0
        self._is_answer_required = True
        details = HeartbeatDetails(
            heartbeat.boot_id,
            usages,
            heartbeat.identity,
            started=not self._is_start_reported,
            mark=self._remembered.mark,
            machine='' if self._is_start_reported else platform.node()[:_MAX_MACHINE],
        )
        needs_report = self._conductor.heartbeat(
            daemon_context(),
            heartbeat.host,
            heartbeat.digest,
            heartbeat.version,
            details,
        )
        self._is_start_reported = True
        self._heartbeat = None if needs_report else heartbeat
        if not needs_report:
            self.known_usages |= usages
        return needs_report
