# SPDX-License-Identifier: Apache-2.0
"""Changes of the configuration of managed hardware, and the job that makes them.

The job runs the teardown and the set-up of a hardware set while the devices are held.
It runs on the conductor, because a playbook may restart the agent or reboot the host.
An interrupted change starts over with the teardown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from oslo_log import log

from cyborg_lite.clients.playbooks import PlaybookOrder, PlaybookRunner
from cyborg_lite.conductor.devices.devices import HostPeers
from cyborg_lite.conductor.jobs.operations import build_operation
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import hold, reconfigurations
from cyborg_lite.db.devices.reconfigurations import (
    NewReconfiguration,
    ReconfigurationWork,
)
from cyborg_lite.db.inventory import agents
from cyborg_lite.db.jobs.queue import read_payload
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.devices import (
    DeviceNotFound,
    PlaybookFailed,
    ReconfigurationDelayed,
    ReconfigurationRefused,
)
from cyborg_lite.model.devices.reconfiguration import (
    ConfigurationRequest,
    DeviceConfiguration,
    DeviceFacts,
    HardwareSet,
    HardwareSets,
    Phase,
)
from cyborg_lite.model.jobs import Job, ReconfigurePayload
from cyborg_lite.model.operations import (
    NewOperation,
    Operation,
    OperationKind,
    SubjectType,
)
from cyborg_lite.rpc.context import RequestContext, request_context
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor

LOG = log.getLogger(__name__)

# A change may start over once; the rest is for Placement and for the report.
_RUNS: Final = 2
_MARGIN: Final = 600  # seconds


@dataclass(frozen=True, slots=True)
class ReconfigurationService:
    """Shows the hardware sets of devices and starts changes."""

    database: Database
    sets: HardwareSets
    wake: Callable[[], None]  # called when a job was written

    @serves(Conductor.show_configuration)
    def show(self, uuid: str) -> DeviceConfiguration:
        device = self.database.read(hold.find_device, uuid)
        matching = self.sets.list_matching(device)

        def selects(facts: DeviceFacts) -> bool:
            return any(_affects(item, facts) for item in matching)

        users = self.database.read(reconfigurations.list_users, device, selects)
        return DeviceConfiguration(
            device.uuid,
            device.hostname,
            tuple(item.to_view() for item in matching),
            users,
            self.database.read(reconfigurations.list_changes, uuid),
        )

    @serves(Conductor.change_configuration)
    def change(
        self,
        context: RequestContext,
        uuid: str,
        request: ConfigurationRequest,
        generation: int | None = None,
    ) -> DeviceConfiguration:
        operation = build_operation(
            context,
            OperationKind.CONFIGURATION,
            SubjectType.DEVICE,
            uuid,
            set=request.hardware_set,
            settings=dict(request.settings),
        )
        self._start(uuid, request, operation, generation)
        self.wake()
        return replace(self.show(uuid), operation=operation.uuid)

    def restart(
        self,
        context: RequestContext,
        operation: Operation,
        renewed_operation: NewOperation,
    ) -> None:
        """Start a change that has failed again, with the same settings."""
        parameters, actor = operation.parameters, context.user_id or 'unknown'
        request = ConfigurationRequest(parameters['set'], parameters['settings'], actor)
        self._start(operation.subject_id, request, renewed_operation)

    def _start(
        self,
        uuid: str,
        request: ConfigurationRequest,
        operation: NewOperation,
        generation: int | None = None,
    ) -> None:
        device = self.database.read(hold.find_device, uuid)
        hardware_set = self._find_set(device, request.hardware_set)
        hardware_set.check_settings(request.settings)
        limit = _RUNS * 2 * hardware_set.timeout + _MARGIN
        new = NewReconfiguration(
            uuid,
            request.hardware_set,
            dict(request.settings),
            request.actor,
            limit * 1000,
        )
        selects = partial(_affects, hardware_set)
        record = self.database.write(
            reconfigurations.add_change, new, selects, operation, generation
        )
        LOG.info(
            '%s starts change %s of device %s by hardware set %s',
            request.actor,
            record,
            uuid,
            request.hardware_set,
        )

    def _find_set(self, device: DeviceFacts, name: str) -> HardwareSet:
        matching = self.sets.list_matching(device)
        reason = device.find_unsafe()
        for item in matching:
            if item.name == name and not reason:
                return item
        names = ', '.join(item.name for item in matching) or 'none'
        reason = reason or f'it is not allowed for the device. Its sets: {names}.'
        raise ReconfigurationRefused(uuid=device.uuid, name=name, reason=reason)


@dataclass(frozen=True, slots=True)
class ReconfigureHandler:
    """Runs jobs that change the configuration of devices."""

    database: Database
    sets: HardwareSets
    playbooks: PlaybookRunner
    peers: HostPeers

    def run(self, job: Job) -> None:
        """Hold the devices, run the playbooks, wait for the report, end the hold."""
        payload = read_payload(ReconfigurePayload, job.payload)
        read, write = self.database.read, self.database.write
        record = read(reconfigurations.find_change, payload.record_uuid)
        if record is None:
            self._end(job, 'The device was removed.')
            return
        hardware_set = self._find_set(record.hardware_set)
        selects = partial(_affects, hardware_set)
        try:
            work = write(reconfigurations.begin_change, job, payload, selects)
            if not work.is_applied:
                self.peers.sync_placement(work.device.hostname)
                # An instance may be scheduled to a device that has no ARQ yet.
                reason = self.peers.describe_allocations(work.provider_uuids)
                if reason:
                    raise ReconfigurationRefused(
                        uuid=work.device.uuid, name=hardware_set.name, reason=reason
                    )
        except (DeviceNotFound, ReconfigurationRefused) as error:
            is_unchanged = record.phase is None
            self._end(job, error.text, is_unchanged=is_unchanged)
            return
        try:
            if not work.is_applied:
                self._apply(job, work, hardware_set)
        except PlaybookFailed as error:
            self._end(job, error.text)
            self.peers.try_sync(work.device.hostname)
            return
        self._await_report(job, work.device.hostname)
        write(reconfigurations.end_change, job)
        LOG.info('Device %s configured by %s', work.device.uuid, hardware_set.name)
        self.peers.try_sync(work.device.hostname)

    def expire(self, job: Job, reason: str) -> None:
        """End the job. A playbook may have begun to change devices that are held."""
        is_held = self.database.read(hold.is_held, job)
        self._end(job, reason, is_unchanged=not is_held)

    def _find_set(self, name: str) -> HardwareSet:
        hardware_set = self.sets.find(name)
        if hardware_set is None:
            reason = f'This conductor has no hardware set {name}.'
            raise ReconfigurationDelayed(reason=reason)
        return hardware_set

    def _apply(
        self, job: Job, work: ReconfigurationWork, hardware_set: HardwareSet
    ) -> None:
        """Run the teardown, then the set-up.

        :raises PlaybookFailed: a playbook failed
        :raises ReconfigurationDelayed: a playbook was killed before its end
        """
        device = work.device
        variables = {
            **hardware_set.variables,
            **work.record.settings,
            'cyborg_lite_device_uuid': device.uuid,
            'cyborg_lite_device_address': device.address,
        }
        for phase, playbook in (
            (Phase.TEARDOWN, hardware_set.teardown),
            (Phase.SETUP, hardware_set.setup),
        ):
            order = PlaybookOrder(
                self.sets.directory,
                self.sets.inventory,
                playbook,
                device.hostname,
                variables,
                hardware_set.timeout,
            )
            progress = _Progress(self.database, job, work.record.uuid, phase)
            progress.confirm([])
            result = self.playbooks.run(order, progress.confirm)
            if result.reason:
                raise PlaybookFailed(phase=phase, reason=result.reason)
        self.database.write(reconfigurations.record_applied, job)

    def _await_report(self, job: Job, hostname: str) -> None:
        """Check that the inventory after the set-up is stored.

        :raises ReconfigurationDelayed: it is not yet
        :raises HostAway: the agent does not answer, for example during a reboot
        """
        digest = self.peers.agents.scan(request_context(job.request_id), hostname)
        agent = self.database.read(agents.find_agent, hostname)
        if digest != (agent.digest if agent else None):
            reason = f'Host {hostname} has not reported its devices yet.'
            raise ReconfigurationDelayed(reason=reason)

    def _end(self, job: Job, failure: str, *, is_unchanged: bool = False) -> None:
        LOG.error('Job %s did not change the configuration: %s', job.uuid, failure)
        end = reconfigurations.end_change
        self.database.write(end, job, failure, is_unchanged=is_unchanged)


class _Progress:
    """Stores the log of a playbook, and confirms the lease of the job with it."""

    def __init__(self, database: Database, job: Job, record: str, phase: Phase) -> None:
        self._database = database
        self._job = job
        self._record = record
        self._phase = phase
        self._pending: list[str] = []  # lines that are not stored yet

    def confirm(self, lines: Sequence[str]) -> bool:
        """Store lines; return False if the database does not answer now.

        :raises JobLost: another conductor took over the job
        """
        self._pending += [f'{self._phase}: {line}' for line in lines]
        try:
            self._database.write(
                reconfigurations.record_progress,
                self._job,
                self._record,
                self._phase,
                tuple(self._pending),
            )
        except ServiceUnavailable as error:
            LOG.warning('Progress of job %s not stored: %s', self._job.uuid, error.text)
            return False
        self._pending.clear()
        return True


def _affects(hardware_set: HardwareSet, device: DeviceFacts) -> bool:
    """Check whether a change of another device of the host affects a device."""
    return not hardware_set.is_per_device and hardware_set.selects(device)
