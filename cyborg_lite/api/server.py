# SPDX-License-Identifier: Apache-2.0
"""A web server in this process, for where there is no other one."""

import logging
import threading
from contextlib import suppress
from typing import Any, Final

from cheroot import server as cheroot_server
from cheroot import wsgi
from cheroot.ssl.builtin import BuiltinSSLAdapter
from oslo_context.context import generate_request_id
from oslo_log import log

from cyborg_lite.api import errors
from cyborg_lite.exceptions import ConfigurationError
from cyborg_lite.model.text import shown

LOG = log.getLogger(__name__)

_BACKLOG: Final = 128
_IDLE_CONNECTIONS: Final = 1024
_HEADER_BYTES: Final = 65536
_BODY_HELD: Final = 2**20  # bytes that are read to keep a connection
_BODY_HEARD: Final = 2**25  # bytes that are thrown away to end one politely
_PIECE: Final = 2**13
# Seconds for the requests in hand when we stop. Whoever stops us has a limit of its own
# and ends the process.
_PATIENCE: Final = 3600


class ApiServer:
    """Serves a WSGI application in threads of its own.

    The constructor only keeps; nothing listens before ``start``.
    """

    def __init__(self, application: Any, section: Any) -> None:
        """:param application: any WSGI application
        :param section: ``[api]``
        """
        self._application = application
        self._section = section
        self._server: _Server | None = None  # None: not started
        self._stopping: threading.Thread | None = None

    @property
    def port(self) -> int:
        """Where it listens, also when the system chose; after ``start``."""
        if self._server is None:
            raise RuntimeError('not started')
        return int(self._server.bind_addr[1])

    def start(self) -> None:
        """Return when connections are accepted.

        :raises ConfigurationError: the address cannot be used, or a certificate
        """
        section = self._section
        server = _Server(
            (str(section.host), section.port),
            self._application,
            numthreads=section.threads,
            max=section.threads,
            server_name='cyborg-lite',
            request_queue_size=_BACKLOG,
            shutdown_timeout=_PATIENCE,
            # Each worker listens on its own; the kernel shares connections out.
            reuse_port=section.workers > 1,
        )
        try:
            server.ssl_adapter = _tls(section)
            server.prepare()
        except (OSError, ValueError) as error:
            address = f'{section.host}:{section.port}'
            reason = f'[api] cannot listen on {address}: {error}.'
            raise ConfigurationError(reason=reason) from None
        self._server = server
        threading.Thread(target=server.serve, name='api', daemon=True).start()
        LOG.info('Listening on %s:%d.', section.host, self.port)

    def stop(self) -> None:
        """Accept no more connections from now on."""
        if self._server is not None and self._stopping is None:
            # The server's own stop waits for the requests in hand.
            self._stopping = threading.Thread(target=self._server.stop, name='api-stop')
            self._stopping.start()

    def wait(self) -> None:
        """Return when the requests in hand are answered; after ``stop``."""
        if self._stopping is not None:
            self._stopping.join()


def _tls(section: Any) -> BuiltinSSLAdapter | None:
    """None: no TLS.

    :raises ValueError: half of it is configured
    :raises OSError: a file cannot be read, or holds something else
    """
    files = (section.certificate_file, section.private_key_file)
    if not any(files):
        return None
    if not all(files):
        raise ValueError('certificate_file and private_key_file belong together')
    return BuiltinSSLAdapter(*files)


class _HeaderReader(cheroot_server.HeaderReader):
    def _allow_header(self, key_name: bytes) -> bool:
        # X_Roles and X-Roles are one name to WSGI, but not to a proxy that takes the
        # headers of identities away. The library's own reader of this kind compares
        # text with bytes and fails.
        return b'_' not in key_name


class _Request(cheroot_server.HTTPRequest):
    header_reader = _HeaderReader()

    def send_headers(self) -> None:
        """Close the connection where the body was not read and is not soon.

        The library would take the rest of it into memory, whatever its size, or take
        the chunks that are left for the next request.
        """
        left = getattr(self.rfile, 'remaining', 0)
        if left > _BODY_HELD or (self.chunked_read and not self.rfile.closed):
            self.close_connection = True
        super().send_headers()

    def simple_response(self, status: int | str, msg: str = '') -> None:
        """Refuse in our words what is no request, and so never reaches the application.

        :param status: with its phrase, as the library has it
        """
        # What follows on the connection may be the rest of it.
        self.close_connection = True
        code = int(str(status)[:3])
        answer = errors.before_all(code, shown(msg), generate_request_id())
        LOG.info('Not a request: %d %s', code, shown(msg))
        head = ''.join(f'{name}: {value}\r\n' for name, value in answer.headerlist)
        line = f'{self.server.protocol} {answer.status}\r\nConnection: close\r\n'
        with suppress(OSError):  # the client may be gone
            self.conn.wfile.write(f'{line}{head}\r\n'.encode() + answer.body)

    def respond(self) -> None:
        """Hear a client out that is still sending: else it may not read the answer."""
        super().respond()
        if self.close_connection:
            heard = 0
            with suppress(OSError, ValueError):
                while heard < _BODY_HEARD and (piece := self.rfile.read(_PIECE)):
                    heard += len(piece)


class _Connection(cheroot_server.HTTPConnection):
    RequestHandlerClass = _Request


class _Server(wsgi.Server):
    ConnectionClass = _Connection
    keep_alive_conn_limit = _IDLE_CONNECTIONS
    max_request_header_size = _HEADER_BYTES
    # Also of one chunk, which the library takes whole. The application has a limit of
    # its own, far lower, and a better answer.
    max_request_body_size = _BODY_HEARD

    def error_log(
        self, msg: str = '', level: int = logging.INFO, traceback: bool = False
    ) -> None:
        """To our log, and not to standard error."""
        LOG.log(level, '%s', msg, exc_info=traceback)
