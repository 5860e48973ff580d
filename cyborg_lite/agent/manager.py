# SPDX-License-Identifier: Apache-2.0
"""The RPC endpoints of the agent: unpack, and ask the one who knows.

Each method mirrors one of ``cyborg_lite.rpc.agent.AgentAPI``.
"""

from typing import Any

from cyborg_lite.agent.preparation import Preparation
from cyborg_lite.agent.programming import Programming
from cyborg_lite.exceptions import DriverError
from cyborg_lite.model.bitstreams import LoadOrder
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.rpc import agent, wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.transport import endpoint, interface


class Manager:
    """The switchboard. What arrives is JSON of no known type until it is unpacked."""

    target = interface(agent.VERSION)

    def __init__(
        self, preparation: Preparation, programming: Programming | None = None
    ) -> None:
        self._preparation = preparation
        self._programming = programming  # None: it loads no bitstreams

    @endpoint
    def prepare(self, context: RequestContext, handles: Any) -> None:
        self._preparation.prepare(wire.load_all(HeldHandle, handles))

    @endpoint
    def release(self, context: RequestContext, handles: Any) -> None:
        self._preparation.release(wire.load_all(HeldHandle, handles))

    @endpoint
    def program(self, context: RequestContext, order: Any) -> Any:
        wanted = wire.load(LoadOrder, order)
        if self._programming is None:
            reason = 'This host loads no bitstreams: its agent has no [glance] section.'
            raise DriverError(reason=reason)
        return wire.dump(self._programming.program(wanted))
