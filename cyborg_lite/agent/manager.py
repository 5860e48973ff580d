# SPDX-License-Identifier: Apache-2.0
"""RPC endpoints of the agent: parse the arguments and call the component.

Each method mirrors one of ``cyborg_lite.rpc.agent.AgentAPI``.
"""

from typing import Any

from cyborg_lite.agent.preparation import Preparation
from cyborg_lite.agent.programming import Programming
from cyborg_lite.exceptions import DriverError
from cyborg_lite.model.bitstreams import LoadOrder
from cyborg_lite.model.devices import AllocatedHandle
from cyborg_lite.rpc import agent, wire
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.transport import endpoint, interface


class Manager:
    """RPC endpoints. Arguments are JSON of any type until they are parsed."""

    target = interface(agent.VERSION)

    def __init__(
        self,
        preparation: Preparation,
        programming: Programming | None = None,
        boot_id: str = '',
    ) -> None:
        self._preparation = preparation
        self._boot_id = boot_id
        self._programming = programming  # None: Glance is not configured

    @endpoint
    def prepare(self, context: RequestContext, handles: Any) -> None:
        """Prepare attach handles."""
        self._preparation.prepare(wire.load_all(AllocatedHandle, handles))

    @endpoint
    def release(self, context: RequestContext, handles: Any) -> None:
        """Release attach handles."""
        self._preparation.release(wire.load_all(AllocatedHandle, handles))

    @endpoint
    def read_boot_id(self, _context: RequestContext) -> str:
        """Return the boot id. The agent serves calls after it rebuilt its handles."""
        return self._boot_id

    @endpoint
    def program(self, context: RequestContext, order: Any) -> Any:
        """Load a bitstream and return the device."""
        load_order = wire.load(LoadOrder, order)
        if self._programming is None:
            reason = 'This host cannot load bitstreams: section [glance] is empty.'
            raise DriverError(reason=reason)
        return wire.dump(self._programming.program(load_order))
