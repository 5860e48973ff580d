# SPDX-License-Identifier: Apache-2.0
"""HTTP server inside the API process, for hosts without a web server."""

import logging
import threading
from contextlib import suppress
from typing import Any, Final

from cheroot import errors as cheroot_errors
from cheroot import server as cheroot_server
from cheroot import wsgi
from cheroot.ssl.builtin import BuiltinSSLAdapter
from oslo_context.context import generate_request_id
from oslo_log import log

from cyborg_lite.api import errors
from cyborg_lite.api.request_collector import (
    HEADER_BYTES,
    ConnectionLimits,
    RequestCollector,
)
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.text import format_value
from cyborg_lite.rpc.context import RequestContext

LOG = log.getLogger(__name__)

_BACKLOG: Final = 128
_IDLE_TIMEOUT: Final = 10  # seconds between two requests, and to send a response
_MAX_UNREAD_BODY: Final = 2**20  # bytes to read and discard to keep a connection
_MAX_DISCARDED_BODY: Final = 2**25  # bytes to read and discard before closing one
_DISCARD_TIMEOUT: Final = 5.0  # seconds to read and discard a body before closing
_CHUNK: Final = 2**13  # bytes


class ApiServer:
    """Serves a WSGI application in its own threads."""

    def __init__(self, application: Any, section: Any) -> None:
        """Store the arguments; ``start`` opens the port.

        :param application: WSGI application
        :param section: options of ``[api]``
        """
        self._application = application
        self._section = section
        self._server: _Server | None = None  # None: not started
        self._serving: threading.Thread | None = None
        self._stopping: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port that the server listens on, which the kernel may have chosen.

        :raises RuntimeError: ``start`` has not been called
        """
        if self._server is None:
            raise RuntimeError('not started')
        return int(self._server.bind_addr[1])

    def start(self) -> None:
        """Start the server and return when it accepts connections.

        :raises ConfigurationError: the address or the certificate cannot be used
        """
        section = self._section
        server = _Server(
            (str(section.host), section.port),
            self._application,
            numthreads=section.threads,
            max=section.threads,
            server_name='cyborg-lite',
            request_queue_size=_BACKLOG,
            timeout=_IDLE_TIMEOUT,
            # Each worker has its own socket; the kernel distributes connections.
            reuse_port=section.workers > 1,
        )
        try:
            server.ssl_adapter = _build_tls_adapter(section)
            server.prepare()
        except (OSError, ValueError) as error:
            address = f'{section.host}:{section.port}'
            reason = f'[api] cannot listen on {address}: {error}.'
            raise ConfigurationError(reason=reason) from None
        server.start_collector(_read_limits(section))
        self._server = server
        self._serving = threading.Thread(target=server.serve, name='api', daemon=True)
        self._serving.start()
        LOG.info('Listening on %s:%d.', section.host, self.port)

    def list_threads(self) -> list[threading.Thread]:
        """Return the thread that accepts connections until the stop."""
        return [self._serving] if self._serving is not None else []

    def stop(self) -> None:
        """Stop accepting connections; requests that are running continue."""
        if self._server is not None and self._stopping is None:
            # The stop method of the library waits for the running requests.
            self._stopping = threading.Thread(target=self._server.stop, name='api-stop')
            self._stopping.start()

    def wait(self) -> None:
        """Wait for the end of the running requests; call ``stop`` first."""
        if self._stopping is not None:
            self._stopping.join()


def _read_limits(section: Any) -> ConnectionLimits:
    return ConnectionLimits(
        header_timeout=section.header_timeout,
        body_timeout=section.body_timeout,
        idle_timeout=_IDLE_TIMEOUT,
        connections=section.max_connections,
        connections_per_address=section.max_connections_per_address,
    )


class _TlsAdapter(BuiltinSSLAdapter):
    def wrap(self, sock: Any) -> tuple[Any, dict[str, Any]]:
        """Return a TLS socket without a handshake, which could block the server."""
        wrapped = self.context.wrap_socket(
            sock, do_handshake_on_connect=False, server_side=True
        )
        return wrapped, {}


def _build_tls_adapter(section: Any) -> BuiltinSSLAdapter | None:
    """Return the TLS adapter; None: TLS is not configured.

    :raises ValueError: only one of the two files is configured
    :raises OSError: a file cannot be read or is not valid
    """
    files = (section.certificate_file, section.private_key_file)
    if not any(files):
        return None
    if not all(files):
        raise ValueError('certificate_file and private_key_file must be set together')
    return _TlsAdapter(*files)


class _HeaderReader(cheroot_server.HeaderReader):
    def _allow_header(self, key_name: bytes) -> bool:
        # WSGI maps X_Roles and X-Roles to one name. A proxy that removes identity
        # headers may treat them as two names. The reader of the library for this case
        # compares str with bytes and fails.
        return b'_' not in key_name


class _Request(cheroot_server.HTTPRequest):
    header_reader = _HeaderReader()

    def parse_request(self) -> None:
        """Parse the header with a new request id as the context of log lines."""
        # Otherwise they have the id, user and project of the previous request.
        self.context = RequestContext(request_id=generate_request_id())
        super().parse_request()

    def read_request_line(self) -> bool:
        """Parse the request line. Return False after sending an error."""
        try:
            return bool(super().read_request_line())  # type: ignore[no-untyped-call]  # cheroot's
        except ValueError:  # of urlsplit, e.g. for an invalid IPv6 address
            self.simple_response('400 Bad Request', 'Malformed Request-URI')
            return False

    def read_request_headers(self) -> bool:
        """Parse the header fields. Return False after sending an error."""
        try:
            is_valid = super().read_request_headers()  # type: ignore[no-untyped-call]  # cheroot's
        except cheroot_errors.MaxSizeExceeded:
            text = f'The header must have at most {HEADER_BYTES} bytes.'
            self.simple_response('431 Request Header Fields Too Large', text)
            return False
        if not is_valid:
            return False
        length = self.inheaders.get(b'Content-Length', b'0')
        if length.isdigit():
            return True
        # int() accepts +1 and 1_0, which a proxy may read differently.
        self.simple_response('400 Bad Request', 'Malformed Content-Length Header.')
        return False

    def send_headers(self) -> None:
        """Close the connection if a large part of the body is unread.

        The library would read the rest into memory, whatever its size, or parse the
        remaining chunks as the next request. The response would be lost if the rest
        does not arrive.
        """
        remaining = getattr(self.rfile, 'remaining', 0)
        if remaining > _MAX_UNREAD_BODY or (
            self.chunked_read and not self.rfile.closed
        ):
            self.close_connection = True
        elif remaining and not self.close_connection:
            try:
                self.rfile.read(remaining)
            except OSError:
                self.close_connection = True
        super().send_headers()

    def simple_response(self, status: int | str, msg: str = '') -> None:
        """Send the error document for input that is not a valid request.

        :param status: code and phrase
        """
        # The following bytes may belong to the invalid request.
        self.close_connection = True
        code = int(str(status)[:3])
        LOG.info('Invalid HTTP request: %d %s', code, format_value(msg))
        text = format_value(msg)
        with suppress(OSError):  # the client may have disconnected
            self.conn.wfile.write(_format_error(code, text, self.context.request_id))

    def respond(self) -> None:
        """Read the rest of the body before the connection is closed.

        A client that is still sending may not read the response otherwise.
        """
        super().respond()
        if self.close_connection:
            self.conn.rfile.limit_time(_DISCARD_TIMEOUT)
            size = 0
            with suppress(OSError, ValueError):
                while size < _MAX_DISCARDED_BODY and (data := self.rfile.read(_CHUNK)):
                    size += len(data)


def _format_error(code: int, text: str, request_id: str) -> bytes:
    """Return the bytes of the response to input that is not a valid request."""
    response = errors.build_protocol_error(code, text, request_id)
    head = ''.join(f'{name}: {value}\r\n' for name, value in response.headerlist)
    line = f'HTTP/1.1 {response.status}\r\nConnection: close\r\n'
    body: bytes = response.body
    return f'{line}{head}\r\n'.encode() + body


class _Connection(cheroot_server.HTTPConnection):
    RequestHandlerClass = _Request

    def close(self) -> None:
        """Close the socket, and count the connection no more."""
        self.server.collector.forget(self)
        super().close()


def _refuse(connection: Any, code: int, text: str) -> None:
    """Send an error without waiting for the client."""
    request_id = RequestContext(request_id=generate_request_id()).request_id
    LOG.info('Refused %s: %d %s', connection.remote_addr, code, text)
    with suppress(OSError):
        connection.socket.settimeout(0)
        connection.socket.send(_format_error(code, text, request_id))


class _Server(wsgi.Server):
    ConnectionClass = _Connection
    max_request_header_size = HEADER_BYTES
    # It also limits one chunk, which the library reads at once. The application has a
    # much lower limit with a better error message.
    max_request_body_size = _MAX_DISCARDED_BODY
    expiration_interval = 0.1  # seconds in which the library detects the stop

    # No limit: the library would take the time from the wall clock. The service manager
    # has its own limit and kills the process.
    shutdown_timeout: Any = None
    collector: RequestCollector

    def start_collector(self, limits: ConnectionLimits) -> None:
        """Start the thread that receives requests."""
        encrypted = self.ssl_adapter is not None
        self.collector = RequestCollector(
            limits,
            super().process_conn,
            _refuse,
            self._complete_handshake if encrypted else None,
        )
        self.collector.start()

    def _complete_handshake(self, connection: Any) -> None:
        connection.ssl_env = self.ssl_adapter.get_environ(connection.socket)

    def process_conn(self, conn: Any) -> None:
        """Receive the first request of a new connection."""
        self.collector.accept(conn)

    def put_conn(self, conn: Any) -> None:
        """Receive the next request of a connection."""
        self.collector.add(conn)

    @property
    def can_add_keepalive_connection(self) -> bool:
        """Return whether connections may stay open: the collector limits them."""
        return bool(self.ready)

    def stop(self) -> None:
        """Stop accepting connections, and wait for the running requests."""
        if self.ready:
            self.collector.stop()
        super().stop()

    def error_log(
        self, msg: str = '', level: int = logging.INFO, traceback: bool = False
    ) -> None:
        """Write the errors of the library to the log, not to standard error."""
        LOG.log(level, '%s', msg, exc_info=traceback)
