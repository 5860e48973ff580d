# SPDX-License-Identifier: Apache-2.0
"""The RPC endpoints of the conductor: unpack, ask the one who knows, pack.

Each method mirrors one of ``cyborg_lite.rpc.conductor.ConductorAPI``. What arrives is
JSON of no known type until it is unpacked.
"""

from dataclasses import dataclass
from typing import Any

from cyborg_lite.conductor.arqs import Arqs
from cyborg_lite.conductor.device_profiles import Profiles
from cyborg_lite.conductor.devices import Devices
from cyborg_lite.conductor.inventory import Inventory
from cyborg_lite.conductor.programming import Programming
from cyborg_lite.conductor.recovery import Recovery
from cyborg_lite.db import attributes, deployables, devices, services
from cyborg_lite.db.engine import Database
from cyborg_lite.model.arqs import Binding
from cyborg_lite.model.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.devices import DeviceStatus
from cyborg_lite.model.host_events import HostEvent, Outcome
from cyborg_lite.model.inventory import HostReport
from cyborg_lite.model.queries import Query
from cyborg_lite.model.services import Vitals
from cyborg_lite.rpc import conductor, wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.transport import endpoint, interface


@dataclass(frozen=True, slots=True)
class Rooms:
    """Those who know; plain reads and writes the switchboard passes on itself."""

    profiles: Profiles
    arqs: Arqs
    devices: Devices
    inventory: Inventory
    programming: Programming
    recovery: Recovery


class Manager:
    """The switchboard."""

    target = interface(conductor.VERSION)

    def __init__(self, database: Database, rooms: Rooms) -> None:
        self._database = database
        self._profiles = rooms.profiles
        self._arqs = rooms.arqs
        self._devices = rooms.devices
        self._inventory = rooms.inventory
        self._programming = rooms.programming
        self._recovery = rooms.recovery

    # --- device profiles ---

    @endpoint
    def create_device_profiles(
        self, context: RequestContext, profiles: Any, possible: bool = False
    ) -> Any:
        wanted = wire.load_all(DeviceProfile, profiles)
        return wire.dump(self._profiles.create(wanted, possible))

    @endpoint
    def list_device_profiles(self, context: RequestContext, query: Any) -> Any:
        return wire.dump(self._profiles.list(context, wire.load(Query, query)))

    @endpoint
    def change_device_profile(
        self, context: RequestContext, uuid: str, change: Any, possible: bool = False
    ) -> Any:
        wanted = wire.load(ProfileChange, change)
        return wire.dump(self._profiles.change(context, uuid, wanted, possible))

    @endpoint
    def explain_device_profile(
        self, context: RequestContext, uuid: str, hostname: str | None
    ) -> Any:
        return wire.dump(self._profiles.explain(context, uuid, hostname))

    @endpoint
    def delete_device_profiles(self, context: RequestContext, names: list[str]) -> None:
        self._profiles.delete(context, names)

    @endpoint
    def list_profile_access(self, context: RequestContext, uuid: str) -> Any:
        return wire.dump(self._profiles.access(context, uuid))

    @endpoint
    def grant_profile_access(
        self, context: RequestContext, uuid: str, projects: list[str]
    ) -> Any:
        return wire.dump(self._profiles.grant(context, uuid, projects))

    @endpoint
    def revoke_profile_access(
        self, context: RequestContext, uuid: str, projects: list[str]
    ) -> None:
        self._profiles.revoke(context, uuid, projects)

    # --- accelerator requests ---

    @endpoint
    def create_arqs(
        self,
        context: RequestContext,
        device_profile_name: str,
        image_uuid: str | None = None,
    ) -> Any:
        made = self._arqs.create(context, device_profile_name, image_uuid)
        return wire.dump(made)

    @endpoint
    def list_arqs(self, context: RequestContext, query: Any) -> Any:
        return wire.dump(self._arqs.list(context, wire.load(Query, query)))

    @endpoint
    def list_arq_steps(self, context: RequestContext, uuid: str) -> Any:
        return wire.dump(self._arqs.history(context, uuid))

    @endpoint
    def bind_arqs(self, context: RequestContext, bindings: dict[str, Any]) -> None:
        wanted = {uuid: wire.load(Binding, one) for uuid, one in bindings.items()}
        self._arqs.bind(context, wanted)

    @endpoint
    def unbind_arqs(self, context: RequestContext, uuids: list[str]) -> None:
        self._arqs.unbind(context, uuids)

    @endpoint
    def delete_arqs(self, context: RequestContext, uuids: list[str]) -> None:
        self._arqs.delete(context, uuids)

    @endpoint
    def delete_arqs_of_instance(self, context: RequestContext, instance: str) -> None:
        self._arqs.delete_of_instance(context, instance)

    # --- devices, deployables, attributes ---

    @endpoint
    def list_devices(self, context: RequestContext, query: Any) -> Any:
        wanted = wire.load(Query, query)
        return wire.dump(self._database.read(devices.listed, wanted))

    @endpoint
    def set_device_status(
        self, context: RequestContext, uuid: str, status: str, reason: str = ''
    ) -> None:
        self._devices.set_status(uuid, DeviceStatus(status), reason)

    @endpoint
    def list_deployables(self, context: RequestContext, query: Any) -> Any:
        wanted = wire.load(Query, query)
        return wire.dump(self._database.read(deployables.listed, wanted))

    @endpoint
    def program_deployable(
        self, context: RequestContext, uuid: str, image_uuid: str
    ) -> Any:
        return wire.dump(self._programming.program(context, uuid, image_uuid))

    @endpoint
    def start_programming(
        self, context: RequestContext, uuid: str, image_uuid: str
    ) -> Any:
        return wire.dump(self._programming.start(context, uuid, image_uuid))

    @endpoint
    def show_program_job(self, context: RequestContext, uuid: str) -> Any:
        return wire.dump(self._programming.show(context, uuid))

    @endpoint
    def list_bitstreams(
        self, context: RequestContext, filters: dict[str, str], deployable: str
    ) -> Any:
        return wire.dump(self._programming.bitstreams(filters, deployable))

    @endpoint
    def list_attributes(self, context: RequestContext, query: Any) -> Any:
        wanted = wire.load(Query, query)
        return wire.dump(self._database.read(attributes.listed, wanted))

    @endpoint
    def create_attribute(
        self, context: RequestContext, deployable_id: int, key: str, value: str
    ) -> Any:
        made = self._database.write(attributes.create, deployable_id, key, value)
        return wire.dump(made)

    @endpoint
    def delete_attribute(self, context: RequestContext, uuid: str) -> None:
        self._database.write(attributes.delete, uuid)

    # --- daemons ---

    @endpoint
    def list_services(self, context: RequestContext, query: Any) -> Any:
        wanted = wire.load(Query, query)
        return wire.dump(self._database.read(services.listed, wanted))

    @endpoint
    def echo(self, context: RequestContext) -> None:
        """That it arrives is the answer."""

    # --- agents ---

    @endpoint
    def report_host(self, context: RequestContext, report: Any) -> None:
        self._inventory.report(context, wire.load(HostReport, report))

    @endpoint
    def heartbeat(
        self,
        context: RequestContext,
        host: str,
        digest: str,
        version: str,
        vitals: Any = None,
    ) -> bool:
        told = wire.load(Vitals, vitals or {})
        return self._inventory.heartbeat(host, digest, version, told)

    @endpoint
    def report_recovery(
        self, context: RequestContext, host: str, boot_id: str, rebuilt: Any, lost: Any
    ) -> Any:
        outcome = {'host': host, 'boot_id': boot_id, 'rebuilt': rebuilt, 'lost': lost}
        return wire.dump(self._recovery.settle(wire.load(Outcome, outcome)))

    @endpoint
    def report_events(self, context: RequestContext, host: str, events: Any) -> int:
        return self._recovery.hear(host, wire.load_all(HostEvent, events))
