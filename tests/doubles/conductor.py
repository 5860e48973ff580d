# SPDX-License-Identifier: Apache-2.0
"""Fake conductor with the rules of the real one, without a message bus."""

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from cyborg_lite.exceptions import (
    AttributeExists,
    AttributeNotFound,
    DeployableNotFound,
    DeviceNotFound,
    HostNotFound,
    JobNotFound,
    ServiceAlive,
    ServiceNotFound,
)
from cyborg_lite.model import typed_attributes
from cyborg_lite.model.bitstream_list import ListedBitstream
from cyborg_lite.model.cleaning import (
    OPERATOR_STATES,
    CleaningRecord,
    CleaningState,
    CleanState,
    DeviceCleanings,
    UnitSelection,
)
from cyborg_lite.model.device_errors import (
    CleaningRefused,
    ModeRefused,
    ReconfigurationRefused,
)
from cyborg_lite.model.device_events import DeviceEvent
from cyborg_lite.model.devices import (
    AllocatedHandle,
    Attribute,
    DeployableRecord,
    DeviceRecord,
    DeviceStatus,
)
from cyborg_lite.model.host_topology import HostTopology
from cyborg_lite.model.inventory import HostReport
from cyborg_lite.model.jobs import JobRecord, JobRequest, JobState, JobType
from cyborg_lite.model.modes import DevicePlan, ModeChange
from cyborg_lite.model.program_jobs import ProgramJob, ProgramState, ProgramStep
from cyborg_lite.model.queries import Query
from cyborg_lite.model.reconfiguration import (
    ConfigurationRequest,
    DeviceConfiguration,
    Reconfiguration,
    ReconfigurationState,
)
from cyborg_lite.model.services import Service, ServiceState
from cyborg_lite.model.typed_attributes import AttributeDeclaration
from cyborg_lite.model.usages import UnitUsage, UsageQuery, UsageReport
from cyborg_lite.rpc.context import RequestContext
from tests.builders.job_records import build_job_record
from tests.doubles.conductor_arqs import ArqsInMemory
from tests.doubles.generations import check_generation
from tests.doubles.paging import page


class FakeConductor(ArqsInMemory):
    """Conductor whose content and callers are visible to tests."""

    def __init__(self) -> None:
        super().__init__()
        self.devices: dict[str, DeviceRecord] = {}
        self.deployables: dict[str, DeployableRecord] = {}
        self.attributes: dict[str, Attribute] = {}
        self.programmed: list[tuple[str, str]] = []
        self.jobs: dict[str, ProgramJob] = {}
        self.queued_jobs: dict[str, JobRecord] = {}
        self.job_requests: list[JobRequest] = []
        self.bitstreams: dict[str, ListedBitstream] = {}  # by deployable uuid
        self.bitstream_filters: list[dict[str, str]] = []
        self.services: dict[str, Service] = {}
        self.reports: dict[str, HostReport] = {}  # by host
        self.calls: list[str] = []  # methods that agents called
        self.cleanings: dict[str, DeviceCleanings] = {}  # by device uuid
        self.plans: dict[str, DevicePlan] = {}  # modes by device uuid
        self.topologies: dict[str, HostTopology] = {}  # by host
        self.events: dict[str, tuple[DeviceEvent, ...]] = {}  # by device uuid
        self.usages: tuple[UnitUsage, ...] = ()
        self.usage_queries: list[UsageQuery] = []
        # By device uuid.
        self.configurations: dict[str, DeviceConfiguration] = {}

    # --- devices, deployables, attributes ---

    def list_devices(
        self, context: RequestContext, query: Query
    ) -> tuple[DeviceRecord, ...]:
        self._record_call(context)
        return page(self.devices.values(), query)

    def list_deployables(
        self, context: RequestContext, query: Query
    ) -> tuple[DeployableRecord, ...]:
        self._record_call(context)
        uuids = {record.id: record.uuid for record in self.deployables.values()}

        def value(record: DeployableRecord, key: str) -> object:
            if key in ('parent_uuid', 'root_uuid'):
                number = record.parent_id if key == 'parent_uuid' else record.root_id
                return uuids.get(number or 0)
            return getattr(record, key)

        return page(self.deployables.values(), query, value)

    def list_attribute_declarations(
        self, context: RequestContext
    ) -> tuple[AttributeDeclaration, ...]:
        self._record_call(context)
        return typed_attributes.SHARED

    def list_attributes(
        self, context: RequestContext, query: Query
    ) -> tuple[Attribute, ...]:
        self._record_call(context)
        return page(self.attributes.values(), query)

    def set_device_status(
        self,
        context: RequestContext,
        uuid: str,
        status: DeviceStatus,
        reason: str = '',
        generation: int | None = None,
    ) -> None:
        self._record_call(context)
        if uuid not in self.devices:
            raise DeviceNotFound(uuid=uuid)
        record = self.devices[uuid]
        check_generation(record, generation)
        self.devices[uuid] = dataclasses.replace(
            record,
            status=status,
            status_reason=reason,
            generation=record.generation + 1,
        )

    def list_device_events(
        self, context: RequestContext, device_uuid: str
    ) -> tuple[DeviceEvent, ...]:
        self._record_call(context)
        if device_uuid not in self.events:
            raise DeviceNotFound(uuid=device_uuid)
        return self.events[device_uuid]

    def sum_usages(self, context: RequestContext, query: UsageQuery) -> UsageReport:
        self._record_call(context)
        self.usage_queries.append(query)
        return UsageReport(self.usages, query.end)

    def plan_modes(self, context: RequestContext, uuid: str) -> DevicePlan:
        self._record_call(context)
        if uuid not in self.plans:
            raise DeviceNotFound(uuid=uuid)
        return self.plans[uuid]

    def change_mode(
        self,
        context: RequestContext,
        uuid: str,
        mode: str,
        generation: int | None = None,
    ) -> DevicePlan:
        plan = self.plan_modes(context, uuid)
        self._raise_generation(uuid, generation)
        if plan.arqs or plan.find(mode) is None:
            reason = f'ARQs use it: {", ".join(plan.arqs)}.'
            raise ModeRefused(uuid=uuid, mode=mode, reason=reason)
        change = ModeChange(mode, JobState.WAITING)
        self.plans[uuid] = dataclasses.replace(plan, change=change)
        return self.plans[uuid]

    def show_host_topology(
        self, context: RequestContext, hostname: str
    ) -> HostTopology:
        self._record_call(context)
        if hostname not in self.topologies:
            raise HostNotFound(host=hostname)
        return self.topologies[hostname]

    def show_configuration(
        self, context: RequestContext, uuid: str
    ) -> DeviceConfiguration:
        self._record_call(context)
        if uuid not in self.configurations:
            raise DeviceNotFound(uuid=uuid)
        return self.configurations[uuid]

    def change_configuration(
        self,
        context: RequestContext,
        uuid: str,
        request: ConfigurationRequest,
        generation: int | None = None,
    ) -> DeviceConfiguration:
        configuration = self.show_configuration(context, uuid)
        self._raise_generation(uuid, generation)
        if configuration.arqs:
            reason = f'ARQs use it: {", ".join(configuration.arqs)}.'
            raise ReconfigurationRefused(
                uuid=uuid, name=request.hardware_set, reason=reason
            )
        change = Reconfiguration(
            uuid=str(uuid4()),
            hardware_set=request.hardware_set,
            settings=request.settings,
            state=ReconfigurationState.WAITING,
            actor=request.actor,
            created_at=datetime.now(UTC),
        )
        changed = dataclasses.replace(configuration, changes=(change,))
        self.configurations[uuid] = changed
        return changed

    def _raise_generation(self, uuid: str, expected: int | None) -> None:
        record = self.devices.get(uuid)
        if record is not None:
            check_generation(record, expected)
            number = record.generation + 1
            self.devices[uuid] = dataclasses.replace(record, generation=number)

    def list_cleanings(
        self, context: RequestContext, device_uuid: str
    ) -> DeviceCleanings:
        self._record_call(context)
        if device_uuid not in self.devices:
            raise DeviceNotFound(uuid=device_uuid)
        return self.cleanings.get(device_uuid, DeviceCleanings())

    def retry_cleaning(
        self, context: RequestContext, selection: UnitSelection, actor: str
    ) -> int:
        state, record = CleanState.DIRTY, CleaningState.RUNNING
        return self._decide(context, selection, actor, (state, record))

    def accept_units(
        self, context: RequestContext, selection: UnitSelection, actor: str
    ) -> int:
        state, record = CleanState.CLEAN, CleaningState.ACCEPTED
        return self._decide(context, selection, actor, (state, record))

    def _decide(
        self,
        context: RequestContext,
        selection: UnitSelection,
        actor: str,
        result: tuple[CleanState, CleaningState],
    ) -> int:
        before = self.list_cleanings(context, selection.device_uuid)
        chosen = [
            unit
            for unit in before.units
            if unit.state in OPERATOR_STATES and selection.unit in ('', unit.unit)
        ]
        if not chosen:
            reason = 'it has no such unit.'
            raise CleaningRefused(
                uuid=selection.device_uuid, action='change', reason=reason
            )
        state, record_state = result
        records = tuple(
            CleaningRecord(str(uuid4()), unit.unit, record_state, actor, self.now())
            for unit in chosen
        )
        units = tuple(
            dataclasses.replace(unit, state=state) if unit in chosen else unit
            for unit in before.units
        )
        self.cleanings[selection.device_uuid] = DeviceCleanings(
            units, (*records, *before.cleanings)
        )
        return len(chosen)

    def program_deployable(
        self, context: RequestContext, uuid: str, image_uuid: str
    ) -> DeployableRecord:
        self._record_call(context)
        if uuid not in self.deployables:
            raise DeployableNotFound(uuid=uuid)
        self.programmed.append((uuid, image_uuid))
        self.deployables[uuid] = dataclasses.replace(
            self.deployables[uuid], bitstream_id=image_uuid
        )
        return self.deployables[uuid]

    def start_programming(
        self, context: RequestContext, uuid: str, image_uuid: str
    ) -> ProgramJob:
        self.program_deployable(context, uuid, image_uuid)
        job = ProgramJob(
            str(uuid4()),
            uuid,
            image_uuid,
            ProgramState.RUNNING,
            ProgramStep.ACCEPTED,
            '',
            self.now(),
        )
        self.jobs[job.uuid] = job
        return job

    def show_program_job(self, context: RequestContext, uuid: str) -> ProgramJob:
        self._record_call(context)
        if uuid not in self.jobs:
            raise JobNotFound(uuid=uuid)
        return self.jobs[uuid]

    def list_jobs(self, context: RequestContext, query: Query) -> tuple[JobRecord, ...]:
        self._record_call(context)

        def value(record: JobRecord, key: str) -> object:
            return record.type if key == 'kind' else getattr(record, key)

        return page(self.queued_jobs.values(), query, value)

    def request_job(self, context: RequestContext, request: JobRequest) -> JobRecord:
        self._record_call(context)
        self.job_requests.append(request)
        kind = JobType.AUDIT if not request.hostname else JobType.PLACEMENT_SYNC
        payload = {'host': request.hostname} if request.hostname else {}
        job = build_job_record(type=kind, payload=payload)
        self.queued_jobs[job.uuid] = job
        return job

    def retry_job(self, context: RequestContext, uuid: str) -> None:
        job = self._find_job(context, uuid)
        self.queued_jobs[uuid] = dataclasses.replace(job, state=JobState.WAITING)

    def cancel_job(self, context: RequestContext, uuid: str) -> None:
        job = self._find_job(context, uuid)
        self.queued_jobs[uuid] = dataclasses.replace(job, cancelled=True)

    def _find_job(self, context: RequestContext, uuid: str) -> JobRecord:
        self._record_call(context)
        if uuid not in self.queued_jobs:
            raise JobNotFound(uuid=uuid)
        return self.queued_jobs[uuid]

    def list_bitstreams(
        self, context: RequestContext, filters: Mapping[str, str], deployable: str
    ) -> tuple[ListedBitstream, ...]:
        self._record_call(context)
        if deployable and deployable not in self.deployables:
            raise DeployableNotFound(uuid=deployable)
        self.bitstream_filters.append(dict(filters))
        bitstream = self.bitstreams.get(deployable)
        return () if bitstream is None else (bitstream,)

    def create_attribute(
        self, context: RequestContext, deployable_id: int, *, key: str, value: str
    ) -> Attribute:
        self._record_call(context)
        if deployable_id not in {record.id for record in self.deployables.values()}:
            raise DeployableNotFound(uuid=deployable_id)
        for attribute in self.attributes.values():
            if (attribute.deployable_id, attribute.key) == (deployable_id, key):
                raise AttributeExists(key=key, deployable=deployable_id)
        created = Attribute(str(uuid4()), deployable_id, key, value, self.now())
        self.attributes[created.uuid] = created
        return created

    def delete_attribute(
        self, context: RequestContext, uuid: str, generation: int | None = None
    ) -> None:
        self._record_call(context)
        if uuid not in self.attributes:
            raise AttributeNotFound(uuid=uuid)
        check_generation(self.attributes[uuid], generation)
        del self.attributes[uuid]

    # --- daemons ---

    def list_services(
        self, context: RequestContext, query: Query
    ) -> tuple[Service, ...]:
        self._record_call(context)
        return page(self.services.values(), query)

    def delete_service(self, context: RequestContext, uuid: str) -> None:
        self._record_call(context)
        service = self.services.get(uuid)
        if service is None:
            raise ServiceNotFound(uuid=uuid)
        if service.state is ServiceState.UP:
            raise ServiceAlive(binary=service.binary, host=service.host)
        del self.services[uuid]

    # Any: arguments that no test of the API passes.
    def check_database(self, context: RequestContext) -> None:
        self._record_call(context)

    def echo(self, context: RequestContext) -> None:
        self._record_call(context)

    def report_changes(self, *_: Any) -> int | None:
        raise NotImplementedError

    def heartbeat(self, *_: Any) -> bool:
        raise NotImplementedError

    def repeat(self, *_: Any) -> bool:
        raise NotImplementedError

    def repeat_without_answer(self, *_: Any) -> None:
        raise NotImplementedError

    def report_recovery(self, *_: Any) -> tuple[AllocatedHandle, ...]:
        raise NotImplementedError

    def reconcile_handles(self, *_: Any) -> tuple[str, ...]:
        raise NotImplementedError

    def report_events(self, *_: Any) -> int:
        raise NotImplementedError
