# SPDX-License-Identifier: Apache-2.0
"""The interface of the conductor, as the API and the agents call it.

1.0  first release
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from oslo_messaging import Transport

from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.arqs import Arq, Binding, Step
from cyborg_lite.model.devices import (
    Attribute,
    DeployableRecord,
    DeviceRecord,
    DeviceStatus,
    HeldHandle,
)
from cyborg_lite.model.host_events import HostEvent
from cyborg_lite.model.inventory import HostReport
from cyborg_lite.model.queries import Query
from cyborg_lite.model.services import Service, Vitals
from cyborg_lite.model.usage import compact
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.profile_calls import ProfileCalls
from cyborg_lite.rpc.programming_calls import ProgrammingCalls
from cyborg_lite.rpc.transport import CONDUCTOR_TOPIC, Caller

VERSION: Final = '1.0'


class ConductorAPI(ProfileCalls, ProgrammingCalls):
    """Every method raises what the conductor raised, or ServiceUnavailable."""

    def __init__(self, transport: Transport) -> None:
        self._caller = Caller(transport, CONDUCTOR_TOPIC, VERSION)

    # --- accelerator requests ---

    def create_arqs(
        self,
        context: RequestContext,
        device_profile_name: str,
        image_uuid: str | None = None,
    ) -> tuple[Arq, ...]:
        """One for each accelerator of the profile, in the order of its groups.

        :param image_uuid: of the server, whose image may ask for something too
        :raises InvalidInput: there is no such image, or it asks for what nobody can
        :raises DeviceProfileNotFound: no such profile, or none that the caller sees
        :raises DeviceProfileDisabled: it makes no more of them
        :raises EmptyDeviceProfile: it asks for nothing
        """
        answer = self._caller.call(
            context,
            'create_arqs',
            since='1.0',
            device_profile_name=device_profile_name,
            image_uuid=image_uuid,
        )
        return wire.load_all(Arq, answer)

    def list_arqs(self, context: RequestContext, query: Query) -> tuple[Arq, ...]:
        """What the caller may see.

        Filters: ``instance_uuid``, ``uuid``, ``state``, ``hostname``,
        ``device_rp_uuid``, ``device_profile_name``, ``project_id``.
        """
        answer = self._caller.call(
            context, 'list_arqs', since='1.0', query=wire.dump(query)
        )
        return wire.load_all(Arq, answer)

    def list_arq_steps(self, context: RequestContext, uuid: str) -> tuple[Step, ...]:
        """The history of one request, oldest first.

        :raises ArqNotFound: it is unknown, or of another project
        """
        answer = self._caller.call(context, 'list_arq_steps', since='1.0', uuid=uuid)
        return wire.load_all(Step, answer)

    def bind_arqs(
        self, context: RequestContext, bindings: Mapping[str, Binding]
    ) -> None:
        """Accept all of them or none; the work goes on afterwards.

        :raises ArqNotFound: one is unknown, or of another project
        :raises InstanceHasArqs: the instance has others, or wins them meanwhile
        :raises ArqStateConflict: one cannot be bound now
        """
        self._caller.call(
            context, 'bind_arqs', since='1.0', bindings=wire.dump(dict(bindings))
        )

    def unbind_arqs(self, context: RequestContext, uuids: Sequence[str]) -> None:
        """Give back what they hold; they can be bound again.

        :raises ArqNotFound: one is unknown, or of another project
        """
        self._caller.call(context, 'unbind_arqs', since='1.0', uuids=list(uuids))

    def delete_arqs(self, context: RequestContext, uuids: Sequence[str]) -> None:
        """Delete those that exist, then complain of the others.

        :raises ServiceTokenRequired: one has an instance; nothing is deleted
        :raises ArqNotFound: some are unknown, or of another project
        """
        self._caller.call(context, 'delete_arqs', since='1.0', uuids=list(uuids))

    def delete_arqs_of_instance(self, context: RequestContext, instance: str) -> None:
        """Delete whatever the instance has; nothing is fine too."""
        self._caller.call(
            context, 'delete_arqs_of_instance', since='1.0', instance=instance
        )

    # --- devices, deployables, attributes ---

    def list_devices(
        self, context: RequestContext, query: Query
    ) -> tuple[DeviceRecord, ...]:
        """Filters: ``uuid``, ``type``, ``vendor``, ``hostname``, ``status``, ``model``,
        ``health``. Who uses them is told where the query is detailed.
        """
        answer = self._caller.call(
            context, 'list_devices', since='1.0', query=wire.dump(query)
        )
        return wire.load_all(DeviceRecord, answer)

    def list_deployables(
        self, context: RequestContext, query: Query
    ) -> tuple[DeployableRecord, ...]:
        """Filters: ``uuid``, ``name``, ``parent_uuid``, ``root_uuid``, ``device_id``,
        ``rp_uuid``, ``driver_name``, ``bitstream_id``."""
        answer = self._caller.call(
            context, 'list_deployables', since='1.0', query=wire.dump(query)
        )
        return wire.load_all(DeployableRecord, answer)

    def list_attributes(
        self, context: RequestContext, query: Query
    ) -> tuple[Attribute, ...]:
        """Filters: ``uuid``, ``deployable_id``, ``key``."""
        answer = self._caller.call(
            context, 'list_attributes', since='1.0', query=wire.dump(query)
        )
        return wire.load_all(Attribute, answer)

    def set_device_status(
        self, context: RequestContext, uuid: str, status: DeviceStatus, reason: str = ''
    ) -> None:
        """What the operator wants of a device, and with it what Placement may give.

        A device that has that status already is left as it is, but for the reason.

        :raises DeviceNotFound: no such device
        :raises PlacementConflict: Placement did not take it; nothing is changed
        """
        self._caller.call(
            context,
            'set_device_status',
            since='1.0',
            uuid=uuid,
            status=status.value,
            reason=reason,
        )

    def create_attribute(
        self, context: RequestContext, deployable_id: int, *, key: str, value: str
    ) -> Attribute:
        """Add an attribute to a deployable.

        :raises DeployableNotFound: no such deployable
        :raises AttributeExists: it has an attribute of that key
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

    def delete_attribute(self, context: RequestContext, uuid: str) -> None:
        """:raises AttributeNotFound: no such attribute"""
        self._caller.call(context, 'delete_attribute', since='1.0', uuid=uuid)

    # --- daemons ---

    def list_services(
        self, context: RequestContext, query: Query
    ) -> tuple[Service, ...]:
        """Filters: ``uuid``, ``binary``, ``host``, ``state``."""
        answer = self._caller.call(
            context, 'list_services', since='1.0', query=wire.dump(query)
        )
        return wire.load_all(Service, answer)

    def is_heard(self, context: RequestContext, within: float = 5.0) -> bool:
        """Whether a message to the conductors arrives at one, within some seconds."""
        try:
            self._caller.call(context, 'echo', since='1.0', timeout=within)
        except CyborgError:
            return False
        return True

    # --- agents ---

    def report_host(self, context: RequestContext, report: HostReport) -> None:
        """The whole inventory of the agent's host."""
        self._caller.call(context, 'report_host', since='1.0', report=wire.dump(report))

    def heartbeat(
        self,
        context: RequestContext,
        host: str,
        digest: str,
        version: str,
        vitals: Vitals | None = None,
    ) -> bool:
        """True: the conductor does not hold that inventory and wants the report."""
        said: dict[str, Any] = {}  # as short as can be: most of what agents say
        if vitals is not None:
            said['vitals'] = {'boot_id': vitals.boot_id}
        if vitals is not None and vitals.figures:
            figures = {where: compact(one) for where, one in vitals.figures.items()}
            said['vitals']['figures'] = figures
        answer = self._caller.call(
            context,
            'heartbeat',
            since='1.0',
            host=host,
            digest=digest,
            version=version,
            **said,
        )
        return bool(answer)

    def report_recovery(
        self,
        context: RequestContext,
        host: str,
        boot_id: str,
        *,
        rebuilt: Sequence[str],
        lost: Mapping[str, str],
    ) -> tuple[HeldHandle, ...]:
        """What has become of prepared handles since the host was booted. To repeat.

        Their requests follow: Bound again, or BindFailed.

        :param rebuilt: uuids of handles that are ready
        :param lost: why, by uuid of handles that cannot be rebuilt
        :returns: what is to be rebuilt besides; the agent does not seem to know of it
        """
        answer = self._caller.call(
            context,
            'report_recovery',
            since='1.0',
            host=host,
            boot_id=boot_id,
            rebuilt=list(rebuilt),
            lost=dict(lost),
        )
        return wire.load_all(HeldHandle, answer)

    def report_events(
        self, context: RequestContext, host: str, events: Sequence[HostEvent]
    ) -> int:
        """What happened on a host, in order; those that were heard before are ignored.

        :returns: the number of the last event that was ever heard of that host
        """
        answer = self._caller.call(
            context,
            'report_events',
            since='1.0',
            host=host,
            events=wire.dump(list(events)),
        )
        return int(answer)
