# SPDX-License-Identifier: Apache-2.0
"""RPC interface of the agent on each host, called by the conductor.

1.0  first release
1.1  AllocatedHandle.managed and for_guest
1.2  read_boot_id
1.3  read_cleaning, start_cleaning, abort_cleaning; AllocatedHandle.cleaning
1.4  list_modes, set_mode
1.5  Bitstream.type
1.6  AllocatedHandle.instance_uuid; connect, named by the answer of prepare
1.7  scan
"""

from collections.abc import Sequence
from typing import Any, Final

from oslo_messaging import Transport

from cyborg_lite.exceptions import DriverError, HostAway, ServiceUnavailable
from cyborg_lite.model.bitstreams import LoadOrder
from cyborg_lite.model.cleaning import CleanOrder, CleanProgress
from cyborg_lite.model.devices import AllocatedHandle
from cyborg_lite.model.inventory import Device
from cyborg_lite.model.modes import DeviceModes, ModeOrder
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.earlier_peers import is_unsupported
from cyborg_lite.rpc.transport import AGENT_TOPIC, Caller

VERSION: Final = '1.7'

_BOOT_ID_TIMEOUT: Final = 5.0  # seconds; Nova waits for the result


class AgentAPI:
    """Typed client of the agents.

    Every method raises what the agent raises, or HostAway.
    """

    def __init__(
        self, transport: Transport, timeout: float, load_timeout: float = 180.0
    ) -> None:
        self._caller = Caller(transport, AGENT_TOPIC, VERSION)
        self._timeout = timeout  # seconds
        self._load_timeout = load_timeout  # seconds; to fetch a bitstream and load it

    def prepare(
        self, context: RequestContext, host: str, handles: Sequence[AllocatedHandle]
    ) -> Sequence[str]:
        """Prepare all handles for the instance, or none. Safe to repeat.

        :returns: uuids of the handles to connect once the instance is spawned; empty if
            the agent is of an earlier release
        :raises DriverError: a handle cannot be prepared; the agent releases the others
        """
        return tuple(self._call_with_handles(context, host, 'prepare', handles) or ())

    def connect(
        self, context: RequestContext, host: str, handles: Sequence[AllocatedHandle]
    ) -> None:
        """Connect handles of a spawned instance. Safe to repeat.

        :raises DriverError: a handle cannot be connected now
        """
        self._call_with_handles(context, host, 'connect', handles, since='1.6')

    def release(
        self, context: RequestContext, host: str, handles: Sequence[AllocatedHandle]
    ) -> None:
        """Release the handles; ignore handles that are not prepared. Safe to repeat."""
        self._call_with_handles(context, host, 'release', handles)

    def read_boot_id(self, context: RequestContext, host: str) -> str:
        """Return the id of the boot for which the agent has rebuilt its handles.

        :returns: empty if the agent is of an earlier release
        :raises HostAway: the agent does not answer within five seconds
        """
        try:
            boot_id = self._caller.call_host(
                context,
                host,
                'read_boot_id',
                since='1.2',
                timeout=_BOOT_ID_TIMEOUT,
            )
        except ServiceUnavailable as error:
            if is_unsupported(error):
                return ''
            raise HostAway(host=host) from error
        return str(boot_id)

    def scan(self, context: RequestContext, host: str) -> str | None:
        """Have an agent scan its host and report changes; return the digest.

        :returns: None if the agent is of an earlier release
        :raises HostAway: the agent does not answer
        """
        try:
            digest = self._caller.call_host(
                context, host, 'scan', since='1.7', timeout=self._timeout
            )
        except ServiceUnavailable as error:
            if is_unsupported(error):
                return None
            raise HostAway(host=host) from error
        return str(digest)

    def program(self, context: RequestContext, host: str, order: LoadOrder) -> Device:
        """Load a bitstream and return the device as scanned afterwards. Safe to repeat.

        :raises BitstreamRefused: the bitstream does not fit; nothing is changed
        :raises LoadingFailed: the region is unusable now
        :raises DriverError: the load failed, and the region is unchanged
        """
        try:
            answer = self._caller.call_host(
                context,
                host,
                'program',
                since='1.0',
                timeout=self._load_timeout,
                order=wire.dump(order),
            )
        except ServiceUnavailable as error:
            raise HostAway(host=host) from error
        return wire.load(Device, answer)

    # --- modes ---

    def list_modes(self, context: RequestContext, host: str) -> tuple[DeviceModes, ...]:
        """Return the modes of all devices of a host that have any.

        :raises DriverError: the agent is of an earlier release
        """
        answer = self._call_modes(context, host, 'list_modes', self._timeout)
        return wire.load_all(DeviceModes, answer)

    def set_mode(self, context: RequestContext, host: str, order: ModeOrder) -> Device:
        """Set the mode of a device and return the changed device. Safe to repeat.

        :raises ModeUnknown: the change and its rollback failed
        :raises DriverError: the device has its previous mode
        """
        arguments = {'order': wire.dump(order)}
        timeout = self._load_timeout
        answer = self._call_modes(context, host, 'set_mode', timeout, **arguments)
        return wire.load(Device, answer)

    # Any: JSON of several types.
    def _call_modes(
        self,
        context: RequestContext,
        host: str,
        method: str,
        timeout: float,
        **arguments: Any,
    ) -> Any:
        try:
            return self._caller.call_host(
                context, host, method, since='1.4', timeout=timeout, **arguments
            )
        except ServiceUnavailable as error:
            if is_unsupported(error):
                reason = f'The agent of {host} is of a release without modes.'
                raise DriverError(reason=reason) from error
            raise HostAway(host=host) from error

    # --- cleaning ---

    def read_cleaning(
        self, context: RequestContext, host: str, order: CleanOrder
    ) -> CleanProgress:
        """Return what the agent process has done for an order.

        :raises DriverError: the order is stale, or the agent is of an earlier release
        """
        return self._call_with_order(context, host, 'read_cleaning', order)

    def start_cleaning(
        self, context: RequestContext, host: str, order: CleanOrder, session: str
    ) -> CleanProgress:
        """Start a clean in the background, unless it has started.

        :param session: of the progress that ``read_cleaning`` has returned
        :raises DriverError: the order is stale, or the device cannot be cleaned
        """
        return self._call_with_order(
            context, host, 'start_cleaning', order, session=session
        )

    def abort_cleaning(
        self, context: RequestContext, host: str, order: CleanOrder
    ) -> CleanProgress:
        """Start no further step, abort an abortable one, and return the progress.

        :raises DriverError: the order is stale, or the agent is of an earlier release
        """
        return self._call_with_order(context, host, 'abort_cleaning', order)

    def _call_with_order(
        self,
        context: RequestContext,
        host: str,
        method: str,
        order: CleanOrder,
        **arguments: str,
    ) -> CleanProgress:
        try:
            answer = self._caller.call_host(
                context,
                host,
                method,
                since='1.3',
                timeout=self._timeout,
                order=wire.dump(order),
                **arguments,
            )
        except ServiceUnavailable as error:
            if is_unsupported(error):
                reason = f'The agent of {host} is of a release that cannot clean.'
                raise DriverError(reason=reason) from error
            raise HostAway(host=host) from error
        return wire.load(CleanProgress, answer)

    def _call_with_handles(
        self,
        context: RequestContext,
        host: str,
        method: str,
        handles: Sequence[AllocatedHandle],
        *,
        since: str = '1.0',
    ) -> Any:
        """Call a method with handles; return the answer, which is JSON of any type."""
        try:
            return self._caller.call_host(
                context,
                host,
                method,
                since=since,
                timeout=self._timeout,
                handles=wire.dump(list(handles)),
            )
        except ServiceUnavailable as error:
            raise HostAway(host=host) from error
