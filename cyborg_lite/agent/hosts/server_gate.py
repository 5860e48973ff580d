# SPDX-License-Identifier: Apache-2.0
"""Serves RPCs only while the conductor accepts this agent.

If two agents had one name, the message bus would give each of them a part of the calls.
"""

import threading

from oslo_log import log

from cyborg_lite.rpc.dispatcher import Dispatcher
from cyborg_lite.rpc.methods import AGENTS
from cyborg_lite.rpc.transport import Server, Transport, serve

LOG = log.getLogger(__name__)


class ServerGate:
    """Starts and stops the RPC server of the agent. Thread-safe.

    Methods raise ConfigurationError if the broker refuses the user or the queues.
    """

    def __init__(self, transport: Transport, hostname: str) -> None:
        self._transport = transport
        self._hostname = hostname
        self._guard = threading.Lock()
        # None: the handles are not rebuilt yet.
        self._dispatcher: Dispatcher | None = None
        self._accepted = False
        self._closed = False
        self._server: Server | None = None  # None: calls are not served
        self._stopped: list[Server] = []

    def check_queues(self) -> None:
        """Declare the queues of this host, unless the broker is unreachable."""
        dispatcher = Dispatcher(AGENTS, ())
        serve(self._transport, self._hostname, dispatcher).check_queues()

    def set_services(self, dispatcher: Dispatcher) -> None:
        """Serve calls as soon as the conductor accepts the agent."""
        with self._guard:
            self._dispatcher = dispatcher
            self._update()

    def set_accepted(self, accepted: bool) -> None:
        """Start or stop serving calls."""
        with self._guard:
            self._accepted = accepted
            self._update()

    def close(self) -> None:
        """Stop accepting calls permanently."""
        with self._guard:
            self._closed = True
            self._update()

    def wait(self) -> None:
        """Wait until all accepted calls are answered. Call it after ``close``."""
        for server in self._stopped:
            server.wait()

    def _update(self) -> None:
        if not self._accepted or self._closed:
            if self._server is not None:
                self._server.stop()
                self._stopped.append(self._server)
            self._server = None
        elif self._server is None and self._dispatcher is not None:
            server = serve(self._transport, self._hostname, self._dispatcher)
            server.start()
            self._server = server
