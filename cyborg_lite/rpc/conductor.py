# SPDX-License-Identifier: Apache-2.0
"""RPC interface of the conductor, called by the API and the agents.

1.0  first release
1.1  ReasonCode mdev-not-attached and unmanaged-not-attached; AllocatedHandle as in 1.1
     of the agent
1.2  Arq.device_loss; HeartbeatDetails.identity and started; HostReport.identity and
     number; reconcile_handles; delete_service
1.3  AttachHandle.cleaning; list_cleanings, retry_cleaning, accept_units
1.4  plan_modes, change_mode
1.5  HandleType NVMF and VHOST_USER
1.6  report_changes
1.7  Deployable.typed_attributes, DeployableRecord.typed_attributes
1.8  show_host_topology
1.9  list_jobs, request_job, retry_job, cancel_job
1.10  list_device_events, sum_usages; DeviceRecord.health_since and usage_at
1.11  list_attribute_declarations; selectors of device profiles
1.12  show_configuration, change_configuration
1.13  repeat: a short heartbeat
1.14  RecoveryResult.connecting: handles to connect again after a host reboot
1.15  list_arqs, list_devices and list_deployables: the argument packed
1.16  choose_alternatives; DeviceProfile.alternatives, ProfileChange.alternatives,
     Arq.alternative, Explanation.choice
1.17  generation of DeviceProfile, DeviceRecord and Attribute, and of their changes
1.18  count_profile_capacity
1.21  Explanation.cautions; ReasonCode many-candidates
1.22  TopologyDevice.pci_bridges
1.23  Query.cursor and needs_cursor: answers of lists that have the cursor of the page;
      Query.brief: deployables without attributes
"""

import copy
import functools
from collections.abc import Mapping, Sequence
from typing import Final, Self

from oslo_messaging import Transport

from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.arqs import Arq, Binding, Step
from cyborg_lite.model.bitstream_list import ListedBitstream
from cyborg_lite.model.device_profiles import DeviceProfile, ProfileChange
from cyborg_lite.model.devices import Attribute, DeployableRecord, DeviceStatus
from cyborg_lite.model.explanations import Explanation
from cyborg_lite.model.modes import DevicePlan
from cyborg_lite.model.program_jobs import ProgramJob
from cyborg_lite.model.queries import Query
from cyborg_lite.model.services import Service
from cyborg_lite.model.typed_attributes import AttributeDeclaration
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.capacities import CapacityCalls
from cyborg_lite.rpc.cleanings import CleaningCalls
from cyborg_lite.rpc.configurations import ConfigurationCalls
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.generations import expect_generation
from cyborg_lite.rpc.histories import HistoryCalls
from cyborg_lite.rpc.host_calls import HostCalls
from cyborg_lite.rpc.host_topology import TopologyCalls
from cyborg_lite.rpc.jobs import JobCalls
from cyborg_lite.rpc.lists import ListCalls
from cyborg_lite.rpc.pages import load_page
from cyborg_lite.rpc.transport import CONDUCTOR_TOPIC, Caller

VERSION: Final = '1.23'

# Seconds. The conductor replies earlier, with ProgrammingTimedOut if it must.
_PROGRAM_TIMEOUT: Final = 60.0


class ConductorAPI(
    CapacityCalls,
    CleaningCalls,
    ConfigurationCalls,
    HistoryCalls,
    HostCalls,
    JobCalls,
    ListCalls,
    TopologyCalls,
):
    """Typed client of the conductor.

    Every method raises what the conductor raises, or ServiceUnavailable. A device
    profile that the caller may not see raises the same error as a missing one.
    """

    def __init__(self, transport: Transport) -> None:
        self._caller = Caller(transport, CONDUCTOR_TOPIC, VERSION)

    def with_timeout(self, seconds: float) -> Self:
        """Return a client whose calls wait for their reply this long at most."""
        client = copy.copy(self)
        client._caller = self._caller.with_timeout(seconds)
        return client

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
        answer = self._caller.call(
            context,
            'create_arqs',
            since='1.0',
            device_profile_name=device_profile_name,
            image_uuid=image_uuid,
        )
        return wire.load_all(Arq, answer)

    def list_arq_steps(self, context: RequestContext, uuid: str) -> tuple[Step, ...]:
        """Return the history of one ARQ, oldest step first.

        :raises ArqNotFound: the ARQ is unknown, or belongs to another project
        """
        answer = self._caller.call(context, 'list_arq_steps', since='1.0', uuid=uuid)
        return wire.load_all(Step, answer)

    def bind_arqs(
        self, context: RequestContext, bindings: Mapping[str, Binding]
    ) -> None:
        """Accept the bind of all ARQs or of none; a job completes it later.

        :param bindings: by uuid of the ARQ
        :raises ArqNotFound: an ARQ is unknown, or belongs to another project
        :raises InstanceHasArqs: the instance has other ARQs
        :raises ArqStateConflict: an ARQ is in a state that does not allow a bind
        :raises DeviceProfileDisabled: an ARQ is for former servers only, and the
            instance is none
        """
        self._caller.call(
            context, 'bind_arqs', since='1.0', bindings=wire.dump(dict(bindings))
        )

    def unbind_arqs(self, context: RequestContext, uuids: Sequence[str]) -> None:
        """Release the attach handles of the ARQs; the ARQs can be bound again.

        :raises ArqNotFound: an ARQ is unknown, or belongs to another project
        :raises ArqStateConflict: an ARQ is being deleted
        """
        self._caller.call(context, 'unbind_arqs', since='1.0', uuids=list(uuids))

    def delete_arqs(self, context: RequestContext, uuids: Sequence[str]) -> None:
        """Delete the ARQs that exist, then raise an error for the missing ones.

        :raises ServiceTokenRequired: an ARQ has an instance; nothing is deleted
        :raises ArqNotFound: some ARQs are unknown, or belong to another project
        """
        self._caller.call(context, 'delete_arqs', since='1.0', uuids=list(uuids))

    def delete_arqs_of_instance(self, context: RequestContext, instance: str) -> None:
        """Delete all ARQs of the instance; succeed if it has none."""
        self._caller.call(
            context, 'delete_arqs_of_instance', since='1.0', instance=instance
        )

    # --- device profiles ---

    def create_device_profiles(
        self,
        context: RequestContext,
        profiles: Sequence[DeviceProfile],
        *,
        possible: bool = False,
    ) -> tuple[DeviceProfile, ...]:
        """Create all profiles or none; the database sets their ``created_at``.

        :param possible: True: refuse profiles that no device can ever serve
        :raises DeviceProfileExists: a name or a uuid is taken
        :raises ImpossibleDeviceProfile: no device can ever serve a profile
        """
        answer = self._caller.call(
            context,
            'create_device_profiles',
            since='1.0',
            profiles=wire.dump(list(profiles)),
            possible=possible,
        )
        return wire.load_all(DeviceProfile, answer)

    def list_device_profiles(
        self, context: RequestContext, query: Query
    ) -> tuple[DeviceProfile, ...]:
        """Return the profiles that match the query and that the caller may see.

        Filters: ``name`` (current and former names), ``name_prefix`` (current names),
        ``uuid``, ``enabled``, ``is_public``.

        """
        answer = self._caller.call(
            context, 'list_device_profiles', since='1.0', query=wire.dump(query)
        )
        return load_page(answer, functools.partial(wire.load_all, DeviceProfile))

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
        answer = self._caller.call(
            context,
            'change_device_profile',
            uuid=uuid,
            change=wire.dump(change),
            possible=possible,
            **expect_generation(generation, '1.0'),
        )
        return wire.load(DeviceProfile, answer)

    def explain_device_profile(
        self, context: RequestContext, uuid: str, hostname: str | None = None
    ) -> Explanation:
        """Explain for each host why the profile fits or does not fit.

        :param hostname: the only host to explain; None: all hosts
        :raises DeviceProfileNotFound: the profile does not exist
        """
        answer = self._caller.call(
            context,
            'explain_device_profile',
            since='1.0',
            uuid=uuid,
            hostname=hostname,
        )
        return wire.load(Explanation, answer)

    def choose_alternatives(
        self, context: RequestContext, uuid: str
    ) -> tuple[int, ...]:
        """Return the choice of the alternatives of a profile that is valid now.

        :raises DeviceProfileNotFound: the profile does not exist
        """
        answer = self._caller.call(
            context, 'choose_alternatives', since='1.16', uuid=uuid
        )
        return tuple(map(int, answer))

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
        self._caller.call(
            context,
            'delete_device_profiles',
            names=list(names),
            **expect_generation(generation, '1.0'),
        )

    def list_profile_access(
        self, context: RequestContext, uuid: str
    ) -> tuple[str, ...]:
        """Return the ids of the projects that see a profile that is not public.

        :raises DeviceProfileNotFound: the profile does not exist
        """
        answer = self._caller.call(
            context, 'list_profile_access', since='1.0', uuid=uuid
        )
        return tuple(map(str, answer))

    def grant_profile_access(
        self, context: RequestContext, uuid: str, projects: Sequence[str]
    ) -> tuple[str, ...]:
        """Let projects see the profile; return all projects that see it.

        :raises DeviceProfileNotFound: the profile does not exist
        """
        answer = self._caller.call(
            context,
            'grant_profile_access',
            since='1.0',
            uuid=uuid,
            projects=list(projects),
        )
        return tuple(map(str, answer))

    def revoke_profile_access(
        self, context: RequestContext, uuid: str, projects: Sequence[str]
    ) -> None:
        """Hide the profile from projects; ignore projects that do not see it.

        :raises DeviceProfileNotFound: the profile does not exist
        """
        self._caller.call(
            context,
            'revoke_profile_access',
            since='1.0',
            uuid=uuid,
            projects=list(projects),
        )

    # --- devices, deployables, attributes ---

    def list_attributes(
        self, context: RequestContext, query: Query
    ) -> tuple[Attribute, ...]:
        """Return the attributes that match the query.

        Filters: ``uuid``, ``deployable_id``, ``key``.
        """
        answer = self._caller.call(
            context, 'list_attributes', since='1.0', query=wire.dump(query)
        )
        return load_page(answer, functools.partial(wire.load_all, Attribute))

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

        :param generation: that the device must have; None: any
        :raises DeviceNotFound: the device does not exist
        :raises GenerationConflict: the device has another generation
        :raises Conflict: the device is to be enabled while a job changes it
        :raises PlacementConflict: Placement rejected the update; the former status is
            restored
        """
        self._caller.call(
            context,
            'set_device_status',
            uuid=uuid,
            status=status.value,
            reason=reason,
            **expect_generation(generation, '1.0'),
        )

    def plan_modes(self, context: RequestContext, uuid: str) -> DevicePlan:
        """Return what a change of a device to each of its modes would do.

        :raises DeviceNotFound: the device does not exist
        :raises DriverError: the agent of its host has no modes
        :raises HostAway: the agent of its host does not answer
        """
        answer = self._caller.call(context, 'plan_modes', since='1.4', uuid=uuid)
        return wire.load(DevicePlan, answer)

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
        answer = self._caller.call(
            context,
            'change_mode',
            uuid=uuid,
            mode=mode,
            **expect_generation(generation, '1.4'),
        )
        return wire.load(DevicePlan, answer)

    def list_attribute_declarations(
        self, context: RequestContext
    ) -> tuple[AttributeDeclaration, ...]:
        """Return the typed attributes that selectors of device profiles may use."""
        answer = self._caller.call(context, 'list_attribute_declarations', since='1.11')
        return wire.load_all(AttributeDeclaration, answer)

    def create_attribute(
        self, context: RequestContext, deployable_id: int, *, key: str, value: str
    ) -> Attribute:
        """Add an attribute to a deployable.

        :raises DeployableNotFound: the deployable does not exist
        :raises AttributeExists: the deployable has an attribute with the key
        """
        answer = self._caller.call(
            context,
            'create_attribute',
            since='1.0',
            deployable_id=deployable_id,
            key=key,
            value=value,
        )
        return wire.load(Attribute, answer)

    def delete_attribute(
        self, context: RequestContext, uuid: str, generation: int | None = None
    ) -> None:
        """Delete an attribute.

        :param generation: that the attribute must have; None: any
        :raises AttributeNotFound: the attribute does not exist
        :raises GenerationConflict: the attribute has another generation
        """
        self._caller.call(
            context,
            'delete_attribute',
            uuid=uuid,
            **expect_generation(generation, '1.0'),
        )

    # --- bitstreams and programming ---

    def list_bitstreams(
        self, context: RequestContext, filters: Mapping[str, str], deployable: str
    ) -> tuple[ListedBitstream, ...]:
        """Return the images that match the filters: loadable images first, best first.

        :param filters: values by ``vendor``, ``board``, ``region``, ``function``
        :param deployable: uuid of the deployable to load into; empty: none
        :raises DeployableNotFound: the deployable does not exist
        """
        answer = self._caller.call(
            context,
            'list_bitstreams',
            since='1.0',
            filters=dict(filters),
            deployable=deployable,
        )
        return wire.load_all(ListedBitstream, answer)

    def program_deployable(
        self, context: RequestContext, uuid: str, image_uuid: str
    ) -> DeployableRecord:
        """Load a bitstream into a deployable; return after it is loaded.

        :raises DeployableNotFound: the deployable does not exist
        :raises DeployableInUse: an ARQ owns a handle of it, or a job changes it
        :raises DriverError: the image does not fit, or the host cannot load it
        :raises ProgrammingTimedOut: the load has not ended yet; it may still succeed
        """
        answer = self._caller.call(
            context,
            'program_deployable',
            since='1.0',
            timeout=_PROGRAM_TIMEOUT,
            uuid=uuid,
            image_uuid=image_uuid,
        )
        return wire.load(DeployableRecord, answer)

    def start_programming(
        self, context: RequestContext, uuid: str, image_uuid: str
    ) -> ProgramJob:
        """Start to load a bitstream; return after the job is accepted.

        :raises DeployableNotFound: the deployable does not exist
        :raises DeployableInUse: an ARQ owns a handle of it, or a job changes it
        :raises DriverError: the image does not fit
        """
        answer = self._caller.call(
            context, 'start_programming', since='1.0', uuid=uuid, image_uuid=image_uuid
        )
        return wire.load(ProgramJob, answer)

    def show_program_job(self, context: RequestContext, uuid: str) -> ProgramJob:
        """Return a programming job.

        :raises JobNotFound: the job is unknown, or belongs to another project
        """
        answer = self._caller.call(context, 'show_program_job', since='1.0', uuid=uuid)
        return wire.load(ProgramJob, answer)

    # --- daemons ---

    def list_services(
        self, context: RequestContext, query: Query
    ) -> tuple[Service, ...]:
        """Return the daemons that match the query.

        Filters: ``uuid``, ``binary``, ``host``, ``state``.
        """
        answer = self._caller.call(
            context, 'list_services', since='1.0', query=wire.dump(query)
        )
        return load_page(answer, functools.partial(wire.load_all, Service))

    def delete_service(self, context: RequestContext, uuid: str) -> None:
        """Delete a daemon that is down; for an agent, its host with all devices.

        :raises ServiceNotFound: no daemon has the uuid
        :raises ServiceAlive: the daemon is up
        :raises HostInUse: ARQs of instances use the host of the agent
        """
        self._caller.call(context, 'delete_service', since='1.2', uuid=uuid)

    def is_reachable(self, context: RequestContext, within: float = 5.0) -> bool:
        """Check whether any conductor replies.

        :param within: seconds to wait for the reply
        """
        try:
            self._caller.call(context, 'echo', since='1.0', timeout=within)
        except CyborgError:
            return False
        return True
