# SPDX-License-Identifier: Apache-2.0
"""Reports of agents about the time in which no conductor received their calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from oslo_log import log

from cyborg_lite.db.arqs import recovery
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import hosts
from cyborg_lite.errors.base import InvalidInput
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.hosts.events import HostEvent, RecoveryResult, check_events
from cyborg_lite.model.limits import check_message
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecoveryService:
    """Stores the results of host reboots, and host events.

    An agent may repeat each call; the repetition has no effect.
    """

    database: Database
    wake: Callable[[], None]  # called when jobs were written
    event_deadline: int  # seconds for which the result is sent to Nova
    connect_deadline: int  # seconds in which handles are connected again

    @serves(Conductor.report_recovery)
    def record_result(
        self, host: str, result: RecoveryResult
    ) -> tuple[AllocatedHandle, ...]:
        if result.host != host:
            raise InvalidInput(reason='The result names another host.')
        check_message(result.host, result)
        limits = recovery.JobLimits(
            self.event_deadline * 1000, self.connect_deadline * 1000
        )
        unmentioned = self.database.write(recovery.record_recovery, result, limits)
        if result.lost:
            LOG.error(
                'Host %s cannot rebuild %d handles after a reboot: %s',
                result.host,
                len(result.lost),
                ', '.join(f'{uuid}: {reason}' for uuid, reason in result.lost.items()),
            )
        if unmentioned:
            LOG.warning(
                'Host %s did not report %d handles after a reboot: %s',
                result.host,
                len(unmentioned),
                ', '.join(handle.uuid for handle in unmentioned),
            )
        self.wake()
        return unmentioned

    @serves(Conductor.report_events)
    def record_events(self, host: str, events: Sequence[HostEvent]) -> int:
        check_events(host, events)
        last, new = self.database.write(hosts.record_host_events, host, events)
        for event in new:
            if event.arq_uuid is None:
                LOG.info(
                    'Event %s on host %s, PCI address %s: %s',
                    event.kind,
                    host,
                    event.address,
                    event.reason,
                )
        return last
