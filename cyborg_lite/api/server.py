# SPDX-License-Identifier: Apache-2.0
"""HTTP server inside the API process, for hosts without a web server.

It is waitress, with limits. A client that sends slowly occupies no thread. TLS, and
limits of the time and of the connections of one client, belong to a proxy.
"""

import socket
import threading
from typing import Any, Final

import waitress
from oslo_log import log
from waitress import wasyncore

from cyborg_lite.errors.daemons import ConfigurationError

LOG = log.getLogger(__name__)

# Above the limit of the application, whose error document names the limit.
_BODY_MARGIN: Final = 2**14  # bytes

_POLL_SECONDS: Final = 1

_SETTINGS: Final = {
    # Proxies add it to an answer. The library adds its own name otherwise.
    'ident': 'cyborg-lite',
    'server_name': 'cyborg-lite',  # of a request without Host
    # The application reads these headers if its options permit it.
    'clear_untrusted_proxy_headers': False,
    'max_request_header_size': 2**16,  # bytes
    # Pipelined requests arrive in one read, and their answers are kept until the client
    # reads them.
    'recv_bytes': 2**10,  # bytes
    'channel_timeout': 30,  # seconds without a byte
    'cleanup_interval': 5,  # seconds
    'log_socket_errors': False,
}


class ApiServer:
    """Serves a WSGI application in its own threads."""

    def __init__(self, application: Any, section: Any, body_limit: int) -> None:
        """Store the arguments; ``start`` opens the port.

        :param application: WSGI application
        :param section: options of ``[api]``
        :param body_limit: bytes of the largest body that the application accepts
        """
        self._application = application
        self._section = section
        self._body_limit = body_limit
        self._server: Any = None  # of the library; None: not started
        self._sockets: dict[int, Any] = {}  # by file descriptor
        self._serving: threading.Thread | None = None
        self._is_stopping = False
        self._stopping = threading.Event()

    @property
    def port(self) -> int:
        """The port that the server listens on, which the kernel may have chosen.

        :raises RuntimeError: ``start`` has not been called
        """
        if self._server is None:
            raise RuntimeError('not started')
        return int(self._server.effective_port)

    def start(self) -> None:
        """Start the server and return when it accepts connections.

        :raises ConfigurationError: the address cannot be used
        """
        section = self._section
        try:
            listener = _listen(str(section.host), section.port, section.workers > 1)
        except OSError as error:
            address = f'{section.host}:{section.port}'
            reason = f'[api] cannot listen on {address}: {error}.'
            raise ConfigurationError(reason=reason) from None
        self._server = waitress.create_server(
            self._application,
            map=self._sockets,
            sockets=[listener],
            threads=section.threads,
            connection_limit=section.max_connections,
            max_request_body_size=self._body_limit + _BODY_MARGIN,
            **_SETTINGS,
        )
        self._serving = threading.Thread(target=self._serve, name='api', daemon=True)
        self._serving.start()
        LOG.info('Listening on %s:%d.', section.host, self.port)

    def list_threads(self) -> list[threading.Thread]:
        """Return the thread that receives requests until the stop."""
        return [self._serving] if self._serving is not None else []

    def stop(self) -> None:
        """Stop accepting connections; requests that are running continue."""
        if self._server is not None and not self._is_stopping:
            self._is_stopping = True
            # The serving thread closes the trigger only after this call.
            self._server.trigger.pull_trigger(self._stopping.set)

    def wait(self) -> None:
        """Wait for the end of the running requests; call ``stop`` first."""
        if self._serving is not None:
            self._serving.join()

    def _serve(self) -> None:
        """Serve until the stop, then until the running requests are answered."""
        server = self._server
        while not self._stopping.is_set():
            self._serve_events()
        # Only the listener: threads that answer requests still use the trigger.
        wasyncore.dispatcher.close(server)
        while server.active_channels:
            for channel in server.active_channels.values():
                if not channel.requests and not channel.total_outbufs_len:
                    channel.will_close = True
            self._serve_events()
        server.task_dispatcher.shutdown()
        wasyncore.close_all(self._sockets)

    def _serve_events(self) -> None:
        wasyncore.loop(_POLL_SECONDS, use_poll=True, map=self._sockets, count=1)


def _listen(host: str, port: int, is_shared: bool) -> socket.socket:
    """Open the port.

    :param is_shared: each worker has its own socket; the kernel distributes connections
    :raises OSError: the address cannot be used
    """
    family, *_kind, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return socket.create_server(
        address[:2],
        family=family,
        reuse_port=is_shared,
        dualstack_ipv6=host == '::' and socket.has_dualstack_ipv6(),
    )
