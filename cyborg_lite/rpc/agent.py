# SPDX-License-Identifier: Apache-2.0
"""The interface of the agent on each host, as the conductor calls it.

1.0  first release
"""

from collections.abc import Sequence
from typing import Final

from oslo_messaging import Transport

from cyborg_lite.exceptions import HostAway, ServiceUnavailable
from cyborg_lite.model.bitstreams import LoadOrder
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Device
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.transport import AGENT_TOPIC, Caller

VERSION: Final = '1.0'


class AgentAPI:
    """Every method raises what the agent raised, or HostAway."""

    def __init__(
        self, transport: Transport, timeout: float, load_timeout: float = 180.0
    ) -> None:
        self._caller = Caller(transport, AGENT_TOPIC, VERSION)
        self._timeout = timeout  # seconds
        self._load_timeout = load_timeout  # seconds; to fetch a bitstream and load it

    def prepare(
        self, context: RequestContext, host: str, handles: Sequence[HeldHandle]
    ) -> None:
        """Make all of them ready for a guest, or none. Safe to repeat.

        :raises DriverError: one cannot be made ready; the others are given back
        """
        self._tell(context, host, 'prepare', handles)

    def release(
        self, context: RequestContext, host: str, handles: Sequence[HeldHandle]
    ) -> None:
        """Undo ``prepare``; what was never prepared is done. Safe to repeat."""
        self._tell(context, host, 'release', handles)

    def program(self, context: RequestContext, host: str, order: LoadOrder) -> Device:
        """Load a bitstream; the device as the host finds it then. Safe to repeat.

        :raises BitstreamRefused: it does not fit; nothing was touched
        :raises LoadingFailed: the region cannot be used any more
        :raises DriverError: it could not be loaded, and the region is as it was
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

    def _tell(
        self,
        context: RequestContext,
        host: str,
        method: str,
        handles: Sequence[HeldHandle],
    ) -> None:
        try:
            self._caller.call_host(
                context,
                host,
                method,
                since='1.0',
                timeout=self._timeout,
                handles=wire.dump(list(handles)),
            )
        except ServiceUnavailable as error:
            raise HostAway(host=host) from error
