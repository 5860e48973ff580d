# SPDX-License-Identifier: Apache-2.0
"""The RPC endpoints of the conductor.

Each endpoint mirrors a method of ``cyborg_lite.rpc.conductor.ConductorAPI``. It reads
the arguments from JSON, calls one service and returns the result as JSON.
"""

import functools
from dataclasses import dataclass
from typing import Any, TypeVar

from cyborg_lite.conductor.alternatives import AlternativeService
from cyborg_lite.conductor.arqs import ArqService
from cyborg_lite.conductor.attributes import AttributeService
from cyborg_lite.conductor.cleaning import CleaningService
from cyborg_lite.conductor.deployables import DeployableService
from cyborg_lite.conductor.device_profiles import DeviceProfileService
from cyborg_lite.conductor.devices import DeviceService
from cyborg_lite.conductor.host_topology import HostTopologyService
from cyborg_lite.conductor.hosts import HostService
from cyborg_lite.conductor.inventory import InventoryService
from cyborg_lite.conductor.job_administration import JobService
from cyborg_lite.conductor.modes import ModeService
from cyborg_lite.conductor.programming import ProgrammingService
from cyborg_lite.conductor.reconfiguring import ReconfigurationService
from cyborg_lite.conductor.recovery import RecoveryService
from cyborg_lite.conductor.services import ServiceRegistry
from cyborg_lite.conductor.usages import UsageService
from cyborg_lite.model.arqs import Arq, Binding
from cyborg_lite.model.cleaning import UnitSelection
from cyborg_lite.model.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.devices import DeployableRecord, DeviceRecord, DeviceStatus
from cyborg_lite.model.host_events import HostEvent, RecoveryResult
from cyborg_lite.model.inventory import HostReport
from cyborg_lite.model.jobs import JobRequest
from cyborg_lite.model.queries import Query
from cyborg_lite.model.reconfiguration import ConfigurationRequest
from cyborg_lite.model.report_changes import ReportChanges
from cyborg_lite.model.services import HeartbeatDetails
from cyborg_lite.model.usages import UsageQuery
from cyborg_lite.rpc import compression, conductor, wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.pages import dump_page
from cyborg_lite.rpc.transport import endpoint, interface

T = TypeVar('T')


@dataclass(frozen=True, slots=True)
class ConductorServices:
    """The services that the endpoints call."""

    profiles: DeviceProfileService
    arqs: ArqService
    devices: DeviceService
    deployables: DeployableService
    attributes: AttributeService
    programming: ProgrammingService
    daemons: ServiceRegistry
    inventory: InventoryService
    recovery: RecoveryService
    hosts: HostService
    cleaning: CleaningService
    modes: ModeService
    jobs: JobService
    topology: HostTopologyService
    usages: UsageService
    configurations: ReconfigurationService
    alternatives: AlternativeService


class Manager:
    """The RPC endpoints. Arguments of type Any are JSON that is not checked yet."""

    target = interface(conductor.VERSION)

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    # --- device profiles ---

    @endpoint
    def create_device_profiles(
        self, context: RequestContext, profiles: Any, possible: bool = False
    ) -> Any:
        """Create device profiles."""
        new_profiles = wire.load_all(DeviceProfile, profiles)
        service = self._services.profiles
        return wire.dump(service.create(context, new_profiles, possible))

    @endpoint
    def list_device_profiles(self, context: RequestContext, query: Any) -> Any:
        """List device profiles."""
        service, loaded = self._services.profiles, wire.load(Query, query)
        return dump_page(service.list(context, loaded))

    @endpoint
    def change_device_profile(
        self,
        context: RequestContext,
        uuid: str,
        change: Any,
        possible: bool = False,
        generation: int | None = None,
    ) -> Any:
        """Change a device profile."""
        fields = wire.load(ProfileChange, change)
        service = self._services.profiles
        return wire.dump(service.change(context, uuid, fields, possible, generation))

    @endpoint
    def explain_device_profile(
        self, context: RequestContext, uuid: str, hostname: str | None
    ) -> Any:
        """Explain on which hosts a device profile fits."""
        return wire.dump(self._services.profiles.explain(context, uuid, hostname))

    @endpoint
    def choose_alternatives(self, context: RequestContext, uuid: str) -> list[int]:
        """Choose alternatives of a device profile."""
        return list(self._services.alternatives.choose(context, uuid))

    @endpoint
    def count_profile_capacity(
        self, context: RequestContext, uuid: str, hostname: str | None
    ) -> Any:
        """Count the further servers that fit with a device profile."""
        capacity = self._services.profiles.count_capacity(context, uuid, hostname)
        return wire.dump(capacity)

    @endpoint
    def delete_device_profiles(
        self, context: RequestContext, names: list[str], generation: int | None = None
    ) -> None:
        """Delete device profiles."""
        self._services.profiles.delete(context, names, generation)

    @endpoint
    def list_profile_access(self, context: RequestContext, uuid: str) -> Any:
        """List the projects that may use a device profile."""
        return wire.dump(self._services.profiles.list_access(context, uuid))

    @endpoint
    def grant_profile_access(
        self, context: RequestContext, uuid: str, projects: list[str]
    ) -> Any:
        """Permit projects to use a device profile."""
        return wire.dump(self._services.profiles.grant_access(context, uuid, projects))

    @endpoint
    def revoke_profile_access(
        self, context: RequestContext, uuid: str, projects: list[str]
    ) -> None:
        """Withdraw the permission to use a device profile."""
        self._services.profiles.revoke_access(context, uuid, projects)

    # --- ARQs ---

    @endpoint
    def create_arqs(
        self,
        context: RequestContext,
        device_profile_name: str,
        image_uuid: str | None = None,
    ) -> Any:
        """Create the ARQs of a device profile."""
        return wire.dump(
            self._services.arqs.create(context, device_profile_name, image_uuid)
        )

    @endpoint
    def list_arqs(
        self, context: RequestContext, query: Any, packed: bool = False
    ) -> Any:
        """List ARQs."""
        arqs = self._services.arqs.list(context, wire.load(Query, query))
        return _dump_list(Arq, arqs, packed)

    @endpoint
    def list_arq_steps(self, context: RequestContext, uuid: str) -> Any:
        """List the history of an ARQ."""
        return wire.dump(self._services.arqs.list_steps(context, uuid))

    @endpoint
    def bind_arqs(self, context: RequestContext, bindings: dict[str, Any]) -> None:
        """Bind ARQs to an instance."""
        by_uuid = {uuid: wire.load(Binding, data) for uuid, data in bindings.items()}
        self._services.arqs.bind(context, by_uuid)

    @endpoint
    def unbind_arqs(self, context: RequestContext, uuids: list[str]) -> None:
        """Release the handles of ARQs."""
        self._services.arqs.unbind(context, uuids)

    @endpoint
    def delete_arqs(self, context: RequestContext, uuids: list[str]) -> None:
        """Delete ARQs."""
        self._services.arqs.delete(context, uuids)

    @endpoint
    def delete_arqs_of_instance(self, context: RequestContext, instance: str) -> None:
        """Delete the ARQs of an instance."""
        self._services.arqs.delete_of_instance(context, instance)

    # --- devices, deployables, attributes ---

    @endpoint
    def list_devices(
        self, context: RequestContext, query: Any, packed: bool = False
    ) -> Any:
        """List devices."""
        devices = self._services.devices.list(wire.load(Query, query))
        return _dump_list(DeviceRecord, devices, packed)

    @endpoint
    def set_device_status(
        self,
        context: RequestContext,
        uuid: str,
        status: str,
        reason: str = '',
        generation: int | None = None,
    ) -> None:
        """Change the status of a device."""
        set_status = self._services.devices.set_status
        set_status(uuid, DeviceStatus(status), reason, generation)

    @endpoint
    def plan_modes(self, context: RequestContext, uuid: str) -> Any:
        """Return what a change of a device to each of its modes would do."""
        return wire.dump(self._services.modes.plan(context, uuid))

    @endpoint
    def change_mode(
        self,
        context: RequestContext,
        uuid: str,
        mode: str,
        generation: int | None = None,
    ) -> Any:
        """Start to change the mode of a device."""
        return wire.dump(self._services.modes.change(context, uuid, mode, generation))

    @endpoint
    def show_configuration(self, context: RequestContext, uuid: str) -> Any:
        """Return the hardware sets of a device and its changes."""
        return wire.dump(self._services.configurations.show(uuid))

    @endpoint
    def change_configuration(
        self,
        context: RequestContext,
        uuid: str,
        generation: int | None = None,
        **fields: Any,
    ) -> Any:
        """Start to change the configuration of a device."""
        request = ConfigurationRequest(**fields)
        change = self._services.configurations.change
        return wire.dump(change(context, uuid, request, generation))

    @endpoint
    def list_cleanings(self, context: RequestContext, device_uuid: str) -> Any:
        """List the cleans of a device."""
        return wire.dump(self._services.cleaning.list(device_uuid))

    @endpoint
    def retry_cleaning(
        self, context: RequestContext, selection: Any, actor: str
    ) -> int:
        """Clean units again."""
        units = wire.load(UnitSelection, selection)
        return self._services.cleaning.retry(units, actor)

    @endpoint
    def accept_units(self, context: RequestContext, selection: Any, actor: str) -> int:
        """Declare units clean."""
        units = wire.load(UnitSelection, selection)
        return self._services.cleaning.accept(units, actor)

    @endpoint
    def list_deployables(
        self, context: RequestContext, query: Any, packed: bool = False
    ) -> Any:
        """List deployables."""
        deployables = self._services.deployables.list(wire.load(Query, query))
        return _dump_list(DeployableRecord, deployables, packed)

    @endpoint
    def program_deployable(
        self, context: RequestContext, uuid: str, image_uuid: str
    ) -> Any:
        """Load an image into a deployable, and wait for the result."""
        return wire.dump(self._services.programming.program(context, uuid, image_uuid))

    @endpoint
    def start_programming(
        self, context: RequestContext, uuid: str, image_uuid: str
    ) -> Any:
        """Start a job that loads an image into a deployable."""
        return wire.dump(self._services.programming.start(context, uuid, image_uuid))

    @endpoint
    def show_program_job(self, context: RequestContext, uuid: str) -> Any:
        """Return a programming job."""
        return wire.dump(self._services.programming.show_job(context, uuid))

    @endpoint
    def list_bitstreams(
        self, context: RequestContext, filters: dict[str, str], deployable: str
    ) -> Any:
        """List bitstreams."""
        return wire.dump(
            self._services.programming.list_bitstreams(filters, deployable)
        )

    @endpoint
    def list_attribute_declarations(self, context: RequestContext) -> Any:
        """List the attributes that selectors may use."""
        return wire.dump(self._services.profiles.list_declarations())

    @endpoint
    def list_attributes(self, context: RequestContext, query: Any) -> Any:
        """List attributes."""
        return dump_page(self._services.attributes.list(wire.load(Query, query)))

    @endpoint
    def create_attribute(
        self, context: RequestContext, deployable_id: int, key: str, value: str
    ) -> Any:
        """Add an attribute to a deployable."""
        return wire.dump(self._services.attributes.create(deployable_id, key, value))

    @endpoint
    def delete_attribute(
        self, context: RequestContext, uuid: str, generation: int | None = None
    ) -> None:
        """Delete an attribute."""
        self._services.attributes.delete(uuid, generation)

    @endpoint
    def show_host_topology(self, context: RequestContext, hostname: str) -> Any:
        """Return the devices of a host and who uses them."""
        return wire.dump(self._services.topology.show(hostname))

    # --- jobs ---

    @endpoint
    def list_jobs(self, context: RequestContext, query: Any) -> Any:
        """List unfinished and failed jobs."""
        return dump_page(self._services.jobs.list(wire.load(Query, query)))

    @endpoint
    def request_job(self, context: RequestContext, request: Any) -> Any:
        """Write a job for an administrator."""
        job_request = wire.load(JobRequest, request)
        return wire.dump(self._services.jobs.request(context, job_request))

    @endpoint
    def retry_job(self, context: RequestContext, uuid: str) -> None:
        """Run a job now."""
        self._services.jobs.retry(context, uuid)

    @endpoint
    def cancel_job(self, context: RequestContext, uuid: str) -> None:
        """Cancel a job."""
        self._services.jobs.cancel(context, uuid)

    # --- past events and use ---

    @endpoint
    def list_device_events(self, context: RequestContext, device_uuid: str) -> Any:
        """List the events of a device."""
        return wire.dump(self._services.devices.list_events(device_uuid))

    @endpoint
    def sum_usages(self, context: RequestContext, query: Any) -> Any:
        """Sum the use of units."""
        usage_query = wire.load(UsageQuery, query)
        return wire.dump(self._services.usages.sum(usage_query))

    # --- daemons ---

    @endpoint
    def list_services(self, context: RequestContext, query: Any) -> Any:
        """List agents and conductors."""
        return dump_page(self._services.daemons.list(wire.load(Query, query)))

    @endpoint
    def delete_service(self, context: RequestContext, uuid: str) -> None:
        """See ``ConductorAPI.delete_service``."""
        self._services.hosts.forget_service(uuid)

    @endpoint
    def echo(self, context: RequestContext) -> None:
        """Return nothing. The answer proves that the message bus works."""

    # --- agents ---

    @endpoint
    def report_host(self, context: RequestContext, report: Any) -> int:
        """Store a host report."""
        host_report = wire.load(HostReport, report)
        return self._services.inventory.store_report(context, host_report)

    @endpoint
    def report_changes(
        self, context: RequestContext, host: str, changes: Any
    ) -> int | None:
        """Store the changes of a host since an earlier report."""
        report_changes = compression.load(ReportChanges, changes)
        return self._services.inventory.store_changes(context, host, report_changes)

    @endpoint
    def heartbeat(
        self,
        context: RequestContext,
        host: str,
        digest: str,
        version: str,
        vitals: Any = None,
    ) -> bool:
        """Record a heartbeat of an agent."""
        details = wire.load(HeartbeatDetails, vitals or {})
        return self._services.inventory.record_heartbeat(host, digest, version, details)

    @endpoint
    def repeat(
        self, context: RequestContext, host: str, token: str, figures: Any = None
    ) -> bool:
        """See ``ConductorAPI.repeat``."""
        data = {'boot_id': '', 'figures': figures or {}}
        details = wire.load(HeartbeatDetails, data)
        return self._services.inventory.repeat_heartbeat(host, token, details)

    @endpoint
    def report_recovery(self, context: RequestContext, **result_data: Any) -> Any:
        """Record which handles an agent has rebuilt after a host reboot."""
        result = wire.load(RecoveryResult, result_data)
        return wire.dump(self._services.recovery.record_result(result))

    @endpoint
    def reconcile_handles(
        self, context: RequestContext, host: str, handles: list[str]
    ) -> list[str]:
        """Return the prepared handles of a host that no ARQ owns."""
        return list(self._services.recovery.list_abandoned_handles(host, handles))

    @endpoint
    def report_events(self, context: RequestContext, host: str, events: Any) -> int:
        """Store host events."""
        host_events = wire.load_all(HostEvent, events)
        return self._services.recovery.record_events(host, host_events)


def _dump_list(cls: type[T], records: tuple[T, ...], packed: bool) -> Any:
    """Return a list as JSON, or as compressed text."""
    dump = functools.partial(compression.dump_list, cls) if packed else wire.dump
    return dump_page(records, dump)
