# SPDX-License-Identifier: Apache-2.0
"""The RPC endpoints of the conductor.

Each endpoint mirrors a method of ``cyborg_lite.rpc.conductor.ConductorAPI``. It reads
the arguments from JSON, calls one service and returns the result as JSON.
"""

from dataclasses import dataclass
from typing import Any

from cyborg_lite.conductor.arqs import ArqService
from cyborg_lite.conductor.attributes import AttributeService
from cyborg_lite.conductor.cleaning import CleaningService
from cyborg_lite.conductor.deployables import DeployableService
from cyborg_lite.conductor.device_profiles import DeviceProfileService
from cyborg_lite.conductor.devices import DeviceService
from cyborg_lite.conductor.hosts import HostService
from cyborg_lite.conductor.inventory import InventoryService
from cyborg_lite.conductor.modes import ModeService
from cyborg_lite.conductor.programming import ProgrammingService
from cyborg_lite.conductor.recovery import RecoveryService
from cyborg_lite.conductor.services import ServiceRegistry
from cyborg_lite.model.arqs import Binding
from cyborg_lite.model.cleaning import UnitSelection
from cyborg_lite.model.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.devices import DeviceStatus
from cyborg_lite.model.host_events import HostEvent, RecoveryResult
from cyborg_lite.model.inventory import HostReport
from cyborg_lite.model.queries import Query
from cyborg_lite.model.services import HeartbeatDetails
from cyborg_lite.rpc import conductor, wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.transport import endpoint, interface


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
        return wire.dump(self._services.profiles.create(new_profiles, possible))

    @endpoint
    def list_device_profiles(self, context: RequestContext, query: Any) -> Any:
        """List device profiles."""
        return wire.dump(self._services.profiles.list(context, wire.load(Query, query)))

    @endpoint
    def change_device_profile(
        self, context: RequestContext, uuid: str, change: Any, possible: bool = False
    ) -> Any:
        """Change a device profile."""
        profile_change = wire.load(ProfileChange, change)
        return wire.dump(
            self._services.profiles.change(context, uuid, profile_change, possible)
        )

    @endpoint
    def explain_device_profile(
        self, context: RequestContext, uuid: str, hostname: str | None
    ) -> Any:
        """Explain on which hosts a device profile fits."""
        return wire.dump(self._services.profiles.explain(context, uuid, hostname))

    @endpoint
    def delete_device_profiles(self, context: RequestContext, names: list[str]) -> None:
        """Delete device profiles."""
        self._services.profiles.delete(context, names)

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
    def list_arqs(self, context: RequestContext, query: Any) -> Any:
        """List ARQs."""
        return wire.dump(self._services.arqs.list(context, wire.load(Query, query)))

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
    def list_devices(self, context: RequestContext, query: Any) -> Any:
        """List devices."""
        return wire.dump(self._services.devices.list(wire.load(Query, query)))

    @endpoint
    def set_device_status(
        self, context: RequestContext, uuid: str, status: str, reason: str = ''
    ) -> None:
        """Change the status of a device."""
        self._services.devices.set_status(uuid, DeviceStatus(status), reason)

    @endpoint
    def plan_modes(self, context: RequestContext, uuid: str) -> Any:
        """Return what a change of a device to each of its modes would do."""
        return wire.dump(self._services.modes.plan(context, uuid))

    @endpoint
    def change_mode(self, context: RequestContext, uuid: str, mode: str) -> Any:
        """Start to change the mode of a device."""
        return wire.dump(self._services.modes.change(context, uuid, mode))

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
    def list_deployables(self, context: RequestContext, query: Any) -> Any:
        """List deployables."""
        return wire.dump(self._services.deployables.list(wire.load(Query, query)))

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
    def list_attributes(self, context: RequestContext, query: Any) -> Any:
        """List attributes."""
        return wire.dump(self._services.attributes.list(wire.load(Query, query)))

    @endpoint
    def create_attribute(
        self, context: RequestContext, deployable_id: int, key: str, value: str
    ) -> Any:
        """Add an attribute to a deployable."""
        return wire.dump(self._services.attributes.create(deployable_id, key, value))

    @endpoint
    def delete_attribute(self, context: RequestContext, uuid: str) -> None:
        """Delete an attribute."""
        self._services.attributes.delete(uuid)

    # --- daemons ---

    @endpoint
    def list_services(self, context: RequestContext, query: Any) -> Any:
        """List agents and conductors."""
        return wire.dump(self._services.daemons.list(wire.load(Query, query)))

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
    def report_recovery(
        self, context: RequestContext, host: str, boot_id: str, rebuilt: Any, lost: Any
    ) -> Any:
        """Record which handles an agent has rebuilt after a host reboot."""
        data = {'host': host, 'boot_id': boot_id, 'rebuilt': rebuilt, 'lost': lost}
        result = wire.load(RecoveryResult, data)
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
