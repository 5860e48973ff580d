# SPDX-License-Identifier: Apache-2.0
"""Plans of mode changes for operators, and the job that changes the mode of a device.

The agent is the only one to know the modes of a device. Each plan therefore calls it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from oslo_log import log

from cyborg_lite.conductor.devices.devices import HostPeers
from cyborg_lite.conductor.jobs.operations import build_operation
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import hold, modes
from cyborg_lite.db.jobs.queue import read_payload
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.devices import DeviceNotFound, ModeRefused, ModeUnknown
from cyborg_lite.errors.hosts import HostAway
from cyborg_lite.errors.jobs import JobLost
from cyborg_lite.errors.providers import HostSyncBusy, PlacementConflict
from cyborg_lite.model.devices.modes import (
    DeviceModes,
    DevicePlan,
    ModeChange,
    ModeOrder,
    plan_modes,
)
from cyborg_lite.model.devices.reconfiguration import DeviceFacts
from cyborg_lite.model.inventory import report_rules
from cyborg_lite.model.inventory.host_report import HostReport
from cyborg_lite.model.jobs import Job, JobState, ModePayload
from cyborg_lite.model.operations import OperationKind, SubjectType
from cyborg_lite.rpc.context import RequestContext, request_context
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Agents, Conductor

LOG = log.getLogger(__name__)

_RETRIED: Final = (
    HostAway,
    HostSyncBusy,
    JobLost,
    PlacementConflict,
    ServiceUnavailable,
)


@dataclass(frozen=True, slots=True)
class ModeService:
    """Plans changes of modes and starts them."""

    database: Database
    agents: Agents
    wake: Callable[[], None]  # called when a job was written

    @serves(Conductor.plan_modes)
    def plan(self, context: RequestContext, uuid: str) -> DevicePlan:
        device = self.database.read(hold.find_device, uuid)
        listings = self.agents.list_modes(context, device.hostname)
        own = [item for item in listings if item.address == device.address]
        listing = own[0] if own else DeviceModes(device.address, (), ())
        return DevicePlan(
            device.uuid,
            device.hostname,
            device.address,
            plan_modes(listing),
            listing.declared,
            listing.stored,
            self.database.read(modes.list_users, uuid),
            self.database.read(modes.find_change, uuid),
        )

    @serves(Conductor.change_mode)
    def change(
        self,
        context: RequestContext,
        uuid: str,
        mode: str,
        generation: int | None = None,
    ) -> DevicePlan:
        plan = self.plan(context, uuid)
        if plan.find(mode) is None:
            names = ', '.join(item.mode for item in plan.plans) or 'none'
            reason = f'it has no such mode. Its modes: {names}.'
            raise ModeRefused(uuid=uuid, mode=mode, reason=reason)
        payload = ModePayload(plan.device_uuid, mode)
        operation = build_operation(
            context, OperationKind.MODE, SubjectType.DEVICE, plan.device_uuid, mode=mode
        )
        self.database.write(modes.add_change, payload, operation, generation)
        self.wake()
        change = ModeChange(mode, JobState.WAITING)
        return replace(plan, change=change, operation=operation.uuid)


@dataclass(frozen=True, slots=True)
class ModeHandler:
    """Runs jobs that change modes. A run may repeat an earlier one."""

    database: Database
    peers: HostPeers

    def run(self, job: Job) -> None:
        """Hold the device, have its agent set the mode, and end the hold."""
        payload = read_payload(ModePayload, job.payload)
        try:
            device, providers = self.database.write(modes.hold_device, job, payload)
        except (DeviceNotFound, ModeRefused) as error:
            self._end(job, error.text)
            return
        try:
            self._change(job, device, providers, payload.mode)
        except _RETRIED:
            raise
        except ModeUnknown as error:
            self._end(job, error.text, is_known=False)
        except CyborgError as error:
            self._end(job, error.text)
        else:
            self.database.write(modes.end_change, job)
            LOG.info(
                'Mode of device %s on host %s changed to %s',
                device.uuid,
                device.hostname,
                payload.mode,
            )
        self.peers.try_sync(device.hostname)

    def expire(self, job: Job, reason: str) -> None:
        """End the job. The agent may have begun to change a device that is held."""
        is_held = self.database.read(hold.is_held, job)
        self._end(job, reason, is_known=not is_held)

    def _change(
        self, job: Job, device: DeviceFacts, providers: Sequence[str], mode: str
    ) -> None:
        self.peers.sync_placement(device.hostname)
        # An instance may be scheduled to a device that has no ARQ yet.
        reason = self.peers.describe_allocations(providers)
        if reason:
            raise ModeRefused(uuid=device.uuid, mode=mode, reason=reason)
        # The agent ignores an order that is older than the last one it executed.
        moment = self.database.write(modes.read_order_time, job)
        order = ModeOrder(device.address, mode, moment)
        context = request_context(job.request_id)
        card = self.peers.agents.set_mode(context, device.hostname, order)
        report_rules.check_report(HostReport(device.hostname, '', (card,)))
        self.database.write(modes.record_device, device.hostname, card, job)

    def _end(self, job: Job, failure: str, *, is_known: bool = True) -> None:
        LOG.error('Job %s did not change the mode: %s', job.uuid, failure)
        self.database.write(modes.end_change, job, failure, is_known=is_known)
