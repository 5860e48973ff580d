# SPDX-License-Identifier: Apache-2.0
"""Base of the fake services: an HTTP server that runs in a thread while it is open."""

import threading
from http.server import ThreadingHTTPServer
from typing import Final, Self

_STOP_INTERVAL: Final = 0.05  # seconds in which the server detects the stop


class ThreadedServer:
    """HTTP server that accepts connections once it is created."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f'http://127.0.0.1:{self._server.server_address[1]}'

    def serve(self) -> None:
        """Answer requests until the server is closed."""
        self._server.serve_forever(_STOP_INTERVAL)

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *trouble: object) -> None:
        self._server.shutdown()
        self._server.server_close()
