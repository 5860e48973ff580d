# SPDX-License-Identifier: Apache-2.0
"""The RPC interfaces: what the API and the agents call, and what the conductor calls.

A method is declared here and implemented by one service, which marks its own method
with ``serves``. Clients and servers follow from the declarations. Before release 1.0.0
an interface is changed in place. Afterwards it only grows: ``Terms`` names the version
that introduced a method or a parameter, and data classes gain fields with defaults.

The first argument of each method is the context of the request. Every method of a
client raises the errors of the service, or ServiceUnavailable if no server answers.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from cyborg_lite.model.arqs.arqs import Arq, Binding, Step
from cyborg_lite.model.arqs.project_limits import ResourceUse
from cyborg_lite.model.arqs.usages import UsageQuery, UsageReport
from cyborg_lite.model.attention import AttentionItem
from cyborg_lite.model.bitstreams.bitstreams import LoadOrder
from cyborg_lite.model.bitstreams.listing import ListedBitstream
from cyborg_lite.model.capacity.device_types import DeviceType
from cyborg_lite.model.capacity.explanations import Explanation
from cyborg_lite.model.capacity.server_capacity import ProfileCapacity
from cyborg_lite.model.devices.cleaning import (
    CleanOrder,
    CleanProgress,
    DeviceCleanings,
    UnitSelection,
)
from cyborg_lite.model.devices.devices import (
    AllocatedHandle,
    Attribute,
    ConfirmedHandle,
    DeployableRecord,
    DeviceRecord,
    DeviceStatus,
)
from cyborg_lite.model.devices.events import DeviceEvent
from cyborg_lite.model.devices.modes import DeviceModes, DevicePlan, ModeOrder
from cyborg_lite.model.devices.reconfiguration import (
    ConfigurationRequest,
    DeviceConfiguration,
)
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.hosts.events import (
    HandleComparison,
    HostEvent,
    HostHandle,
    RecoveryResult,
)
from cyborg_lite.model.hosts.incarnations import DatabaseMark
from cyborg_lite.model.hosts.services import HeartbeatDetails, HostSummary, Service
from cyborg_lite.model.hosts.topology import HostTopology
from cyborg_lite.model.inventory.host_report import Device
from cyborg_lite.model.inventory.report_changes import ReportChanges
from cyborg_lite.model.inventory.typed_attributes import AttributeDeclaration
from cyborg_lite.model.operations import Operation, OperationKind
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.security.keys import Role
from cyborg_lite.rpc.terms import Terms

_FROM_AGENTS: Final = frozenset({Role.AGENT})
_FROM_ALL: Final = frozenset(Role)

NO_DETAILS: Final = HeartbeatDetails()
NO_TELEMETRY: Final[Mapping[str, Usage]] = {}


class Conductor(Protocol):
    """Calls of the API and of the agents.

    A device profile that the caller may not see raises the same error as a missing one.
    """

    # --- ARQs ---

    def create_arqs(
        self,
        context: RequestContext,
        device_profile_name: str,
        image_uuid: str | None = None,
    ) -> tuple[Arq, ...]:
        """Create one ARQ per accelerator of the profile, in the order of its groups.

        :param image_uuid: image of the instance; its properties extend the groups
        :raises InvalidInput: the image does not exist or has an invalid property
        :raises DeviceProfileNotFound: the profile does not exist
        :raises DeviceProfileDisabled: the profile is disabled, and the caller is no
            service or no former server had accelerators of the profile
        :raises EmptyDeviceProfile: the profile requests no accelerator
        :raises ProjectLimitExceeded: the project would exceed its limits
        """

    def list_arqs(self, context: RequestContext, query: Query) -> tuple[Arq, ...]:
        """Return the ARQs that match the query and that the caller may see.

        Filters: ``instance_uuid``, ``uuid``, ``state``, ``hostname``,
        ``device_rp_uuid``, ``device_profile_name``, ``project_id``.
        """

    def list_arq_steps(
        self, context: RequestContext, uuid: str, query: Query
    ) -> tuple[Step, ...]:
        """Return a page of the history of one ARQ, the latest step first.

        :raises ArqNotFound: there is neither the ARQ nor a step of it, or it belongs to
            another project
        """

    def list_instance_steps(
        self, context: RequestContext, instance: str, query: Query
    ) -> tuple[Step, ...]:
        """Return a page of the history of the ARQs of an instance, the latest first.

        The page has the steps that the caller may see.
        """

    def bind_arqs(
        self, context: RequestContext, bindings: Mapping[str, Binding]
    ) -> str:
        """Accept the bind of all ARQs or of none; return the uuid of the operation.

        :param bindings: by uuid of the ARQ
        :raises InvalidPatch: the bindings name more than one instance
        :raises ServiceTokenRequired: the caller sent no service token
        :raises ArqNotFound: an ARQ is unknown, or belongs to another project
        :raises InstanceHasArqs: the instance has other ARQs
        :raises ArqStateConflict: an ARQ is in a state that does not allow a bind
        :raises DeviceProfileDisabled: an ARQ is for former servers only, and the
            instance is none
        """

    def unbind_arqs(self, context: RequestContext, uuids: Sequence[str]) -> str:
        """Release the attach handles of the ARQs; return the uuid of the operation.

        :raises ServiceTokenRequired: the caller sent no service token
        :raises ArqNotFound: an ARQ is unknown, or belongs to another project
        :raises ArqStateConflict: an ARQ is being deleted
        """

    def delete_arqs(self, context: RequestContext, uuids: Sequence[str]) -> None:
        """Delete the ARQs that exist, then raise an error for the missing ones.

        :raises ServiceTokenRequired: an ARQ has an instance; nothing is deleted
        :raises ArqNotFound: some ARQs are unknown, or belong to another project
        """

    def delete_arqs_of_instance(self, context: RequestContext, instance: str) -> None:
        """Delete all ARQs of the instance; succeed if it has none.

        :raises ServiceTokenRequired: the caller sent no service token
        """

    # --- device profiles ---

    def create_device_profiles(
        self,
        context: RequestContext,
        new_profiles: Sequence[DeviceProfile],
        *,
        possible: bool = False,
    ) -> tuple[DeviceProfile, ...]:
        """Create all profiles or none; the database sets their ``created_at``.

        :param possible: True: refuse profiles that no device can ever serve
        :raises DeviceProfileExists: a name or a uuid is taken
        :raises ImpossibleDeviceProfile: no device can ever serve a profile
        """

    def list_device_profiles(
        self, context: RequestContext, query: Query
    ) -> tuple[DeviceProfile, ...]:
        """Return the profiles that match the query and that the caller may see.

        Filters: ``name`` (current and former names), ``name_prefix`` (current names),
        ``uuid``, ``enabled``, ``is_public``.
        """

    def change_device_profile(
        self,
        context: RequestContext,
        uuid: str,
        change: ProfileChange,
        *,
        possible: bool = False,
        generation: int | None = None,
    ) -> DeviceProfile:
        """Change a profile and return it; its former name stays an alias.

        :param possible: True: refuse groups that no device can ever serve
        :param generation: that the profile must have; None: any
        :raises DeviceProfileNotFound: the profile does not exist
        :raises GenerationConflict: the profile has another generation
        :raises ImpossibleDeviceProfile: no device can ever serve the profile
        :raises DeviceProfileExists: another profile has or had the new name
        :raises DeviceProfileHasAlternatives: new groups would delete the alternatives
        """

    def explain_device_profile(
        self, context: RequestContext, uuid: str, hostname: str | None = None
    ) -> Explanation:
        """Explain for each host why the profile fits or does not fit.

        :param hostname: the only host to explain; None: all hosts
        :raises DeviceProfileNotFound: the profile does not exist
        """

    def choose_alternatives(
        self, context: RequestContext, uuid: str
    ) -> tuple[int, ...]:
        """Return the choice of the alternatives of a profile that is valid now.

        :raises DeviceProfileNotFound: the profile does not exist
        """

    def delete_device_profiles(
        self,
        context: RequestContext,
        names: Sequence[str],
        generation: int | None = None,
    ) -> None:
        """Delete all profiles or none.

        :param names: name or uuid of each profile
        :param generation: that each profile must have; None: any
        :raises DeviceProfileNotFound: a profile does not exist
        :raises GenerationConflict: a profile has another generation
        :raises DeviceProfileInUse: an ARQ was created from a profile
        """

    def list_profile_access(
        self, context: RequestContext, uuid: str, query: Query
    ) -> tuple[str, ...]:
        """Return a page of the ids of the projects that see a private profile.

        :raises DeviceProfileNotFound: the profile does not exist
        """

    def grant_profile_access(
        self, context: RequestContext, uuid: str, projects: Sequence[str]
    ) -> None:
        """Let projects see the profile.

        :raises DeviceProfileNotFound: the profile does not exist
        """

    def revoke_profile_access(
        self, context: RequestContext, uuid: str, projects: Sequence[str]
    ) -> None:
        """Hide the profile from projects; ignore projects that do not see it.

        :raises DeviceProfileNotFound: the profile does not exist
        """

    # --- capacity ---

    def count_profile_capacity(
        self, context: RequestContext, uuid: str, hostname: str | None = None
    ) -> ProfileCapacity:
        """Return how many further servers with a device profile fit on each host.

        :param hostname: the only host to count; None: all hosts
        :raises DeviceProfileNotFound: the profile does not exist
        """

    def list_device_types(self, context: RequestContext) -> tuple[DeviceType, ...]:
        """Return the types of devices that the profiles of the caller name.

        An administrator also sees the types that no profile names.

        :raises ServiceUnavailable: Glance does not answer
        """

    # --- devices, deployables, attributes ---

    def list_devices(
        self, context: RequestContext, query: Query
    ) -> tuple[DeviceRecord, ...]:
        """Return the devices that match the query.

        Filters: ``uuid``, ``type``, ``vendor``, ``hostname``, ``status``, ``model``,
        ``health``. A detailed query also returns the ARQs that use each device.
        """

    def list_device_events(
        self, context: RequestContext, uuid: str, query: Query
    ) -> tuple[DeviceEvent, ...]:
        """Return a page of the events of a device.

        :raises DeviceNotFound: there is neither a device nor an event with the uuid
        """

    def set_device_status(
        self,
        context: RequestContext,
        uuid: str,
        status: DeviceStatus,
        reason: str = '',
        generation: int | None = None,
    ) -> None:
        """Set the status of a device, and update its providers in Placement.

        If the device has the status already, only the reason changes.

        :param reason: of a maintenance; stored, and shown with the device
        :param generation: that the device must have; None: any
        :raises DeviceNotFound: the device does not exist
        :raises GenerationConflict: the device has another generation
        :raises Conflict: the device is to be enabled while a job changes it
        :raises PlacementConflict: other clients kept changing the provider; the device
            has its former status, or that of a later call
        :raises ServiceUnavailable: Placement is unreachable; likewise
        """

    def set_quarantine(
        self,
        context: RequestContext,
        uuid: str,
        reason: str,
        name: str = '',
        generation: int | None = None,
    ) -> None:
        """Begin or end the quarantine of a device.

        No new instance gets a device in quarantine. ARQs that use it keep it.

        :param reason: empty: end the quarantine
        :param name: who decides that ARQs keep the device; empty: none may use it
        :raises DeviceNotFound: the device does not exist
        :raises GenerationConflict: the device has another generation
        :raises DeviceInUse: ARQs use the device, and there is no name
        """

    def list_deployables(
        self, context: RequestContext, query: Query
    ) -> tuple[DeployableRecord, ...]:
        """Return the deployables that match the query.

        Filters: ``uuid``, ``name``, ``name_prefix``, ``parent_uuid``, ``root_uuid``,
        ``device_id``, ``rp_uuid``, ``driver_name``, ``bitstream_id``.
        """

    def list_attribute_declarations(
        self, context: RequestContext
    ) -> tuple[AttributeDeclaration, ...]:
        """Return the typed attributes that selectors of device profiles may use."""

    def list_attributes(
        self, context: RequestContext, query: Query
    ) -> tuple[Attribute, ...]:
        """Return the attributes that match the query.

        Filters: ``uuid``, ``deployable_id``, ``key``.
        """

    def create_attribute(
        self, context: RequestContext, deployable_id: int, *, key: str, value: str
    ) -> Attribute:
        """Add an attribute to a deployable.

        :raises DeployableNotFound: the deployable does not exist
        :raises AttributeExists: the deployable has an attribute with the key
        """

    def delete_attribute(self, context: RequestContext, uuid: str) -> None:
        """Delete an attribute.

        :raises AttributeNotFound: the attribute does not exist
        """

    def sum_usages(self, context: RequestContext, query: UsageQuery) -> UsageReport:
        """Return the use of units by project, resource class and device profile.

        :raises UsageTooLarge: the answer would be too large
        """

    def list_limits(self, context: RequestContext) -> tuple[ResourceUse, ...]:
        """Return the limits of the project of the caller, and what it uses.

        :raises ServiceUnavailable: Keystone does not answer
        """

    # --- changes of devices ---

    def plan_modes(self, context: RequestContext, uuid: str) -> DevicePlan:
        """Return what a change of a device to each of its modes would do.

        :raises DeviceNotFound: the device does not exist
        :raises DriverError: the agent of its host has no modes
        :raises HostAway: the agent of its host does not answer
        """

    def change_mode(
        self,
        context: RequestContext,
        uuid: str,
        mode: str,
        generation: int | None = None,
    ) -> DevicePlan:
        """Start to change the mode of a device; return the plan.

        :param generation: that the device must have; None: any
        :raises DeviceNotFound: the device does not exist
        :raises GenerationConflict: the device has another generation
        :raises ModeRefused: the device has no such mode, or is in use
        :raises HostAway: the agent of its host does not answer
        """

    def show_configuration(
        self, context: RequestContext, uuid: str
    ) -> DeviceConfiguration:
        """Return the hardware sets of a device and its changes.

        :raises DeviceNotFound: the device does not exist
        """

    def change_configuration(
        self,
        context: RequestContext,
        uuid: str,
        request: ConfigurationRequest,
        generation: int | None = None,
    ) -> DeviceConfiguration:
        """Start to change the configuration of a device; return its changes.

        :param generation: that the device must have; None: any
        :raises DeviceNotFound: the device does not exist
        :raises GenerationConflict: the device has another generation
        :raises InvalidSettings: the set declares no such settings
        :raises ReconfigurationRefused: the set is not for the device, or it is in use
        """

    def list_cleanings(
        self, context: RequestContext, device_uuid: str, query: Query
    ) -> DeviceCleanings:
        """Return the attach handles of a device and a page of its cleaning runs.

        :raises DeviceNotFound: the device does not exist
        """

    def retry_cleaning(
        self, context: RequestContext, selection: UnitSelection, actor: str
    ) -> str:
        """Clean attach handles again that wait for an operator; return the operation.

        :raises DeviceNotFound: the device does not exist
        :raises CleaningRefused: no selected handle waits for an operator
        """

    def reset_device(self, context: RequestContext, selection: UnitSelection) -> str:
        """Clean attach handles that no ARQ has; return the operation.

        :raises DeviceNotFound: the device does not exist
        :raises CleaningRefused: no selected handle is free and has cleaning steps, or
            an ARQ has a handle and the selection has no name
        """

    def accept_units(
        self, context: RequestContext, selection: UnitSelection, actor: str
    ) -> int:
        """Declare handles clean that wait for an operator; return their number.

        :raises DeviceNotFound: the device does not exist
        :raises CleaningRefused: no selected handle waits for an operator
        """

    # --- bitstreams ---

    def list_bitstreams(
        self, context: RequestContext, filters: Mapping[str, str], deployable: str
    ) -> tuple[ListedBitstream, ...]:
        """Return the images that match the filters: loadable images first, best first.

        :param filters: values by ``vendor``, ``board``, ``region``, ``function``
        :param deployable: uuid of the deployable to load into; empty: none
        :raises DeployableNotFound: the deployable does not exist
        :raises ServiceUnavailable: Glance does not answer
        """

    # The conductor answers earlier, with ProgrammingTimedOut if it must.
    @Terms(timeout=60.0)
    def program_deployable(
        self, context: RequestContext, uuid: str, image_uuid: str
    ) -> DeployableRecord:
        """Load a bitstream into a deployable; return after it is loaded.

        :raises DeployableNotFound: the deployable does not exist
        :raises DeployableInUse: an ARQ owns a handle of it, or a job changes it
        :raises DriverError: the image does not fit, or the host cannot load it
        :raises ProgrammingTimedOut: the load has not ended yet; it may still succeed
        """

    def start_programming(
        self,
        context: RequestContext,
        uuid: str,
        image_uuid: str,
        loaded: str | None = None,
    ) -> Operation:
        """Start to load a bitstream; return after the operation is stored.

        :param loaded: the image that the deployable must have; empty: none; None: any
        :raises DeployableNotFound: the deployable does not exist
        :raises DeployableInUse: an ARQ owns a handle of it, or a job changes it, or it
            has another image
        :raises DriverError: the image does not fit
        """

    # --- hosts, operations, daemons ---

    def list_hosts(
        self, context: RequestContext, query: Query
    ) -> tuple[HostSummary, ...]:
        """Return the hosts with an agent or devices that match the query.

        Filters: ``name``, ``agent``.
        """

    def set_host_status(
        self,
        context: RequestContext,
        host: str,
        status: DeviceStatus,
        reason: str,
        expected: HostSummary | None = None,
    ) -> int:
        """Set the status of all devices of a host; return the number of changes.

        :param expected: the host as the caller has read it; None: anything
        :raises HostNotFound: no agent and no device of the host is stored
        :raises HostChanged: the devices of the host, or their status, have changed
        :raises ServiceUnavailable: Placement does not answer
        """

    def forget_host(self, context: RequestContext, host: str, drain: bool) -> str:
        """Delete a host with its devices, handles, jobs, agent and providers.

        :param drain: first put all devices into maintenance, which stays if ARQs or
            the agent prevent the removal
        :returns: the operation, which ends when Placement has no provider of the host
        :raises HostNotFound: no agent and no device of the host is stored
        :raises ServiceAlive: the agent of the host is up
        :raises HostInUse: ARQs of instances use the host
        :raises ServiceUnavailable: the host is drained, and Placement does not answer
        """

    def show_host_topology(
        self, context: RequestContext, hostname: str
    ) -> HostTopology:
        """Return the devices of a host and who uses them.

        :raises HostNotFound: no agent and no device of the host is stored
        """

    def list_operations(
        self, context: RequestContext, query: Query
    ) -> tuple[Operation, ...]:
        """Return the operations that match the query and that the caller may see.

        Filters: ``uuid``, ``kind``, ``state``, ``subject``, ``project_id``.
        """

    def request_operation(
        self,
        context: RequestContext,
        kind: OperationKind,
        host: str,
        applies: bool = False,
    ) -> Operation:
        """Start an operation, or find the unfinished one that does the same work.

        :param host: of a reconcile or refresh; empty for an audit
        :param applies: of an audit: apply the remedies of what it finds
        :raises HostNotFound: the host has no agent
        """

    def retry_operation(self, context: RequestContext, uuid: str) -> None:
        """Run the waiting or failed jobs of an operation now.

        :raises OperationNotFound: the operation does not exist
        :raises OperationRefused: a job is running or was cancelled, or there is none
        """

    def cancel_operation(self, context: RequestContext, uuid: str) -> None:
        """Have a conductor end an operation as if its deadline had passed.

        :raises OperationNotFound: the operation does not exist
        :raises OperationRefused: a job is a failed release, or there is no job
        """

    def list_attention(self, context: RequestContext) -> tuple[AttentionItem, ...]:
        """Return what waits for an operator, at most 1,000 items of a kind."""

    def list_services(
        self, context: RequestContext, query: Query
    ) -> tuple[Service, ...]:
        """Return the daemons that match the query.

        Filters: ``uuid``, ``binary``, ``hostname``, ``state``.
        """

    def delete_service(self, context: RequestContext, uuid: str) -> None:
        """Delete a conductor that is down.

        :raises ServiceNotFound: no conductor has the uuid
        :raises ServiceAlive: the conductor is up
        """

    # A load balancer waits for about five seconds.
    @Terms(timeout=3.0)
    def check_database(self, context: RequestContext) -> None:
        """Read one row of the database.

        :raises ServiceUnavailable: the database does not answer
        """

    @Terms(senders=_FROM_ALL, timeout=5.0)
    def echo(self, context: RequestContext) -> None:
        """Return nothing. The answer proves that the message bus works."""

    # --- hosts of agents: each agent names its own host ---

    @Terms(senders=_FROM_AGENTS, is_compressed=True)
    def report_changes(
        self, context: RequestContext, host: str, changes: ReportChanges
    ) -> int | None:
        """Store the inventory of a host that results from changes. Safe to repeat.

        :param changes: since an earlier report, or the whole report
        :returns: the number of the report. A larger number: nothing was stored, because
            a later report is stored; the report must be sent with this number. None:
            nothing was stored, because the conductor does not have the earlier report
        :raises InvalidInput: the report cannot be stored, or names another host
        :raises AgentIdentityRefused: the host has another agent, which is up
        """

    @Terms(senders=_FROM_AGENTS)
    def heartbeat(
        self,
        context: RequestContext,
        host: str,
        digest: str,
        version: str,
        details: HeartbeatDetails = NO_DETAILS,
    ) -> bool:
        """Record a heartbeat; return True if the conductor requires the host report.

        :param digest: of the last report; the conductor compares it with the stored one
        :raises InvalidInput: the details cannot be stored
        :raises AgentIdentityRefused: the host has another agent, which is up
        """

    @Terms(senders=_FROM_AGENTS, is_short=True)
    def repeat(
        self,
        context: RequestContext,
        host: str,
        token: str,
        telemetry: Mapping[str, Usage] = NO_TELEMETRY,
    ) -> DatabaseMark | None:
        """Record a heartbeat that repeats the last one of the host.

        :param token: ``Heartbeat.token`` of the last heartbeat
        :param telemetry: changed values, by control address
        :returns: the mark of the database, for the agent to remember. None: nothing was
            recorded. The conductor does not know the token and requires a whole
            heartbeat
        :raises InvalidInput: the telemetry cannot be stored
        """

    @Terms(senders=_FROM_AGENTS, is_short=True, has_answer=False)
    def repeat_without_answer(
        self,
        context: RequestContext,
        host: str,
        token: str,
        telemetry: Mapping[str, Usage] = NO_TELEMETRY,
    ) -> None:
        """Record a heartbeat as ``repeat`` does.

        The caller does not learn whether the message arrives, or whether the conductor
        knows the token.
        """

    @Terms(senders=_FROM_AGENTS)
    def report_stop(self, context: RequestContext, host: str, identity: str) -> None:
        """Record that the agent stops, so that its host can be forgotten at once.

        :param identity: of the agent; that of another agent has no effect
        """

    @Terms(senders=_FROM_AGENTS)
    def report_recovery(
        self, context: RequestContext, host: str, result: RecoveryResult
    ) -> tuple[AllocatedHandle, ...]:
        """Record the prepared handles after a host reboot. Safe to repeat.

        The ARQs of the handles change to Bound or BindFailed.

        :returns: further handles to rebuild, which the agent does not know
        :raises InvalidInput: the result cannot be stored, or names another host
        """

    @Terms(senders=_FROM_AGENTS)
    def reconcile_handles(
        self, context: RequestContext, host: str, handles: Sequence[HostHandle]
    ) -> HandleComparison:
        """Compare the prepared handles of a host with the ARQs that own them.

        The agent must release those that no ARQ owns and no instance uses, and store
        those that it lacks and its host has prepared.

        :param handles: all prepared handles of the host
        :raises InvalidInput: a value is invalid
        """

    @Terms(senders=_FROM_AGENTS)
    def report_events(
        self, context: RequestContext, host: str, events: Sequence[HostEvent]
    ) -> int:
        """Store events of a host in order; ignore known events.

        :returns: the number of the last event of that host that the conductor received
        :raises InvalidInput: an event cannot be stored
        """


class Agents(Protocol):
    """Calls of the conductor; the agent of ``host`` serves each.

    Every method also raises HostAway: the agent does not answer, or another call
    changes the device. A repetition continues.
    """

    # --- attach handles ---

    def prepare(
        self, context: RequestContext, host: str, handles: Sequence[AllocatedHandle]
    ) -> tuple[ConfirmedHandle, ...]:
        """Prepare all handles for the instance, or none. Safe to repeat.

        :returns: the handles that are prepared now. A handle is missing if it was
            released or claimed again during the call.
        :raises DriverError: a handle cannot be prepared; those that this call has
            prepared are released
        """

    def connect(
        self, context: RequestContext, host: str, handles: Sequence[AllocatedHandle]
    ) -> None:
        """Connect handles of a spawned instance. Safe to repeat.

        :raises DriverError: a handle cannot be connected now
        """

    def release(
        self, context: RequestContext, host: str, handles: Sequence[AllocatedHandle]
    ) -> None:
        """Release the handles; ignore handles that are not prepared. Safe to repeat."""

    def list_handles(
        self, context: RequestContext, host: str
    ) -> tuple[HostHandle, ...]:
        """Return all handles that the agent stores as prepared."""

    @Terms(timeout=5.0)
    def read_mark(self, context: RequestContext, host: str) -> DatabaseMark:
        """Return the mark of the database that the agent remembers."""

    # Nova waits for the result.
    @Terms(timeout=5.0)
    def read_boot_id(self, context: RequestContext, host: str) -> str:
        """Return the id of the boot for which the agent has rebuilt its handles."""

    @Terms(timeout=5.0)
    def warn(self, context: RequestContext, host: str, text: str) -> None:
        """Write a warning of the conductor to the log of the agent."""

    # --- inventory, modes, bitstreams ---

    def scan(self, context: RequestContext, host: str) -> str:
        """Have an agent scan its host and report changes; return the digest."""

    def list_modes(self, context: RequestContext, host: str) -> tuple[DeviceModes, ...]:
        """Return the modes of all devices of a host that have any."""

    @Terms(is_slow=True)
    def set_mode(self, context: RequestContext, host: str, order: ModeOrder) -> Device:
        """Set the mode of a device and return the changed device. Safe to repeat.

        :raises DeviceBusy: an instance or a program uses the device
        :raises ModeUnknown: the change and its rollback failed
        :raises DriverError: the device has its previous mode
        """

    @Terms(is_slow=True)
    def program(self, context: RequestContext, host: str, order: LoadOrder) -> Device:
        """Load a bitstream and return the device as scanned afterwards. Safe to repeat.

        :raises BitstreamRefused: the bitstream does not fit; nothing is changed
        :raises LoadingFailed: the region is unusable now
        :raises DriverError: the load failed, and the region is unchanged
        """

    # --- cleaning ---

    def read_cleaning(
        self, context: RequestContext, host: str, order: CleanOrder
    ) -> CleanProgress:
        """Return what the agent process has done for an order.

        :raises DriverError: the order is stale
        """

    def start_cleaning(
        self, context: RequestContext, host: str, order: CleanOrder, session: str
    ) -> CleanProgress:
        """Start a cleaning run in the background, unless it has started.

        :param session: of the progress that ``read_cleaning`` has returned
        :raises DriverError: the order is stale, or the handle is in use
        :raises DeviceGone: no driver reports the device
        """

    def abort_cleaning(
        self, context: RequestContext, host: str, order: CleanOrder
    ) -> CleanProgress:
        """Start no further step, abort an abortable one, and return the progress.

        :raises DriverError: the order is stale
        """
