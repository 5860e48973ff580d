# SPDX-License-Identifier: Apache-2.0
"""RPC endpoints of the agent: parse the arguments and call the component.

Each method mirrors one of ``cyborg_lite.rpc.agent.AgentAPI``.
"""

from collections.abc import Callable
from typing import Any

from cyborg_lite.agent.cleaning import Cleaning
from cyborg_lite.agent.modes import Modes
from cyborg_lite.agent.preparation import Preparation
from cyborg_lite.agent.programming import Programming
from cyborg_lite.exceptions import DriverError
from cyborg_lite.model.bitstreams import LoadOrder
from cyborg_lite.model.cleaning import CleanOrder
from cyborg_lite.model.devices import AllocatedHandle
from cyborg_lite.model.modes import ModeOrder
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
        cleaning: Cleaning | None = None,
        modes: Modes | None = None,
    ) -> None:
        self._preparation = preparation
        self._boot_id = boot_id
        self._programming = programming  # None: Glance is not configured
        self._cleaning = cleaning  # None: only in tests of other calls
        self._modes = modes  # None: only in tests of other calls
        # Scans the host and returns the digest. None: only in tests of other calls.
        self.scan_host: Callable[[], str] | None = None

    @endpoint
    def prepare(self, context: RequestContext, handles: Any) -> list[str]:
        """Prepare attach handles; return the uuids of those to connect later."""
        return [*self._preparation.prepare(wire.load_all(AllocatedHandle, handles))]

    @endpoint
    def connect(self, context: RequestContext, handles: Any) -> None:
        """Connect attach handles of a spawned instance."""
        self._preparation.connect(wire.load_all(AllocatedHandle, handles))

    @endpoint
    def release(self, context: RequestContext, handles: Any) -> None:
        """Release attach handles."""
        self._preparation.release(wire.load_all(AllocatedHandle, handles))

    @endpoint
    def read_boot_id(self, _context: RequestContext) -> str:
        """Return the boot id. The agent serves calls after it rebuilt its handles."""
        return self._boot_id

    @endpoint
    def scan(self, _context: RequestContext) -> str:
        """Scan the host; return the digest of its report."""
        if self.scan_host is None:
            raise DriverError(reason='This agent cannot scan.')
        return self.scan_host()

    @endpoint
    def program(self, context: RequestContext, order: Any) -> Any:
        """Load a bitstream and return the device."""
        load_order = wire.load(LoadOrder, order)
        if self._programming is None:
            reason = 'This host cannot load bitstreams: section [glance] is empty.'
            raise DriverError(reason=reason)
        return wire.dump(self._programming.program(load_order))

    # --- modes ---

    @endpoint
    def list_modes(self, context: RequestContext) -> Any:
        """Return the modes of all devices."""
        return wire.dump(list(self._find_modes().list_modes()))

    @endpoint
    def set_mode(self, context: RequestContext, order: Any) -> Any:
        """Set the mode of a device and return the device."""
        return wire.dump(self._find_modes().set_mode(wire.load(ModeOrder, order)))

    def _find_modes(self) -> Modes:
        if self._modes is None:
            raise DriverError(reason='This agent cannot change modes.')
        return self._modes

    # --- cleaning ---

    @endpoint
    def read_cleaning(self, context: RequestContext, order: Any) -> Any:
        """Return the progress of a clean."""
        return wire.dump(self._find_cleaning().read(wire.load(CleanOrder, order)))

    @endpoint
    def start_cleaning(self, context: RequestContext, order: Any, session: str) -> Any:
        """Start a clean in the background."""
        clean_order = wire.load(CleanOrder, order)
        return wire.dump(self._find_cleaning().start(clean_order, session))

    @endpoint
    def abort_cleaning(self, context: RequestContext, order: Any) -> Any:
        """Abort a clean."""
        return wire.dump(self._find_cleaning().abort(wire.load(CleanOrder, order)))

    def _find_cleaning(self) -> Cleaning:
        if self._cleaning is None:
            raise DriverError(reason='This agent cannot clean.')
        return self._cleaning
