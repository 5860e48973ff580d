# SPDX-License-Identifier: Apache-2.0
"""Receives requests before a worker thread handles them, with a limit on the time.

One thread waits for all clients. A client that sends its header or body slowly occupies
memory but no worker thread, and its connection ends at a deadline. All times are by the
monotonic clock.
"""

import io
import math
import re
import selectors
import socket
import ssl
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from oslo_log import log

LOG = log.getLogger(__name__)

HEADER_BYTES: Final = 65536

# Larger bodies are received by a worker thread. The default limit of the application is
# below this value.
_BODY_BYTES: Final = 2**17
_CHUNK: Final = 2**16  # bytes
_END_OF_HEADER: Final = b'\r\n\r\n'
_CONTENT_LENGTH: Final = re.compile(rb'\r\ncontent-length:[ \t]*([0-9]{1,20})\s', re.I)
_CHUNKED: Final = re.compile(rb'\r\ntransfer-encoding:', re.I)
_EXPECT: Final = re.compile(rb'\r\nexpect:[ \t]*100-continue[ \t]*(?=\r\n)', re.I)
_CONTINUE: Final = b'HTTP/1.1 100 Continue\r\n\r\n'
_PLAIN_HTTP: Final = 'HTTP_REQUEST'  # reason of OpenSSL
_HTTPS_ONLY: Final = (
    b'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nThis port requires HTTPS.\n'
)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of the connections of one process; times are in seconds."""

    header_timeout: float  # from the first byte of a request to the end of its header
    body_timeout: float  # from the end of the header to the end of the body
    idle_timeout: float  # from one request to the first byte of the next
    connections: int
    connections_per_address: int


class RequestReader(io.BufferedReader):
    """Reads the received part of a request, and then the socket until a deadline."""

    def __init__(self, sock: Any, received: bytes, timeout: float) -> None:
        """Prepare the reader.

        :param timeout: seconds from the first read of the socket to the last one
        """
        self.source = _Source(sock, received, timeout)
        super().__init__(self.source)
        self.bytes_read = 0  # the library reads it

    def limit_time(self, seconds: float) -> None:
        """Read the socket at most for the given time from now."""
        self.source.limit_time(seconds)

    def drain(self) -> bytes:
        """Return what was received after the request, and read the socket no more."""
        self.source.is_open = False
        return b''.join(iter(lambda: self.read1(_CHUNK), b''))


class _Source(io.RawIOBase):
    def __init__(self, sock: Any, received: bytes, timeout: float) -> None:
        self.is_open = True
        self._socket = sock
        self._received = memoryview(received)
        self._timeout = timeout
        self._deadline: float | None = None  # None: the socket has not been read

    def limit_time(self, seconds: float) -> None:
        """Set an earlier deadline."""
        deadline = time.monotonic() + seconds
        self._deadline = min(deadline, self._deadline or deadline)

    def readable(self) -> bool:
        """Return True, as the buffer requires."""
        return True

    def readinto(self, target: Any) -> int:
        """Read some bytes; 0: the end.

        :raises TimeoutError: the deadline has passed
        """
        if self._received:
            size = min(len(target), len(self._received))
            target[:size] = self._received[:size]
            self._received = self._received[size:]
            return size
        if not self.is_open:
            return 0
        if self._deadline is None:
            self._deadline = time.monotonic() + self._timeout
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError('timed out')  # the library compares the text
        self._socket.settimeout(remaining)
        return int(self._socket.recv_into(target))


@dataclass(eq=False, slots=True)
class _Client:
    """A connection that no worker thread handles."""

    connection: Any
    deadline: float
    received: bytearray = field(default_factory=bytearray)
    needs_handshake: bool = False
    has_header: bool = False
    searched: int = 0  # bytes that contain no end of the header


class RequestCollector:
    """The thread that receives requests. Other threads may call its methods."""

    def __init__(
        self,
        limits: ConnectionLimits,
        dispatch: Callable[[Any], None],
        refuse: Callable[[Any, int, str], None],
        complete_handshake: Callable[[Any], None] | None,
    ) -> None:
        """Prepare the thread.

        :param dispatch: called with each connection whose request is received
        :param refuse: sends an error without waiting: connection, status and text
        :param complete_handshake: called after a TLS handshake; None: no TLS
        """
        self._limits = limits
        self._dispatch = dispatch
        self._refuse = refuse
        self._complete_handshake = complete_handshake
        self._selector = selectors.DefaultSelector()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._selector.register(self._wake_receiver, selectors.EVENT_READ)
        self._lock = threading.Lock()
        self._added: deque[_Client] = deque()
        self._open: dict[Any, str] = {}  # address, by connection
        self._by_address: Counter[str] = Counter()
        self._is_stopping = False
        # No deadline is earlier, so most events need no search for expired clients.
        self._earliest_deadline = math.inf
        self._thread = threading.Thread(target=self._run, name='api-receive')
        self._thread.daemon = True

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Close all connections whose requests are not received completely."""
        with self._lock:
            self._is_stopping = True
        self._wake()
        self._thread.join()

    def accept(self, connection: Any) -> None:
        """Receive the first request of a connection, or refuse the connection."""
        address = str(connection.remote_addr)
        limits = self._limits
        with self._lock:
            has_room = (
                len(self._open) < limits.connections
                and self._by_address[address] < limits.connections_per_address
            )
            if has_room:
                self._open[connection] = address
                self._by_address[address] += 1
        if has_room:
            self._add(connection, b'', self._complete_handshake is not None)
            return
        LOG.warning('Refusing a connection of %s: too many are open', address)
        if self._complete_handshake is None:
            status = HTTPStatus.SERVICE_UNAVAILABLE
            self._refuse(connection, status, 'Too many connections are open.')
        connection.close()

    def add(self, connection: Any) -> None:
        """Receive the next request of a connection that stays open."""
        self._add(connection, connection.rfile.drain())

    def forget(self, connection: Any) -> None:
        """Count the connection no more: it is closed. The call may be repeated."""
        with self._lock:
            address = self._open.pop(connection, None)
            if address is not None:
                self._by_address[address] -= 1
                if not self._by_address[address]:
                    del self._by_address[address]

    def _add(
        self, connection: Any, received: bytes, needs_handshake: bool = False
    ) -> None:
        deadline = time.monotonic() + (
            self._limits.header_timeout if received else self._limits.idle_timeout
        )
        client = _Client(connection, deadline, bytearray(received), needs_handshake)
        with self._lock:
            is_stopping = self._is_stopping
            if not is_stopping:
                self._added.append(client)
        if is_stopping:
            connection.close()
        else:
            self._wake()

    def _wake(self) -> None:
        with suppress(OSError):
            self._wake_sender.send(b'x')

    def _run(self) -> None:
        while not self._is_stopping:
            for key, _events in self._selector.select(self._wait_seconds()):
                if key.data is None:
                    self._wake_receiver.recv(_CHUNK)
                    self._register_added()
                else:
                    self._receive_guarded(key.data)
            self._close_expired()
        self._register_added()
        for client in self._list_clients():
            self._selector.unregister(client.connection.socket)
            client.connection.close()
        self._selector.close()
        self._wake_receiver.close()
        self._wake_sender.close()

    def _list_clients(self) -> list[_Client]:
        keys = self._selector.get_map().values()
        return [key.data for key in keys if key.data is not None]

    def _wait_seconds(self) -> float | None:
        if self._earliest_deadline == math.inf:
            return None
        return max(0.0, self._earliest_deadline - time.monotonic())

    def _set_deadline(self, client: _Client, deadline: float) -> None:
        client.deadline = deadline
        self._earliest_deadline = min(self._earliest_deadline, deadline)

    def _register_added(self) -> None:
        while True:
            with self._lock:
                if not self._added:
                    return
                client = self._added.popleft()
            self._set_deadline(client, client.deadline)
            client.connection.socket.settimeout(0)
            sock = client.connection.socket
            self._selector.register(sock, selectors.EVENT_READ, client)
            # The selector sees neither decrypted data nor what was received before.
            if client.received or isinstance(sock, ssl.SSLSocket):
                self._receive_guarded(client)

    def _receive_guarded(self, client: _Client) -> None:
        try:
            self._receive(client)
        except Exception as error:  # one client must not end the thread
            is_expected = isinstance(error, OSError)
            LOG.log(
                log.DEBUG if is_expected else log.ERROR,
                'Receiving a request of %s failed: %s',
                client.connection.remote_addr,
                error,
                exc_info=not is_expected,
            )
            self._close(client)

    def _receive(self, client: _Client) -> None:
        """Receive what has arrived, and dispatch the request if it is complete.

        :raises OSError: the connection is lost
        """
        if client.needs_handshake and not self._shake_hands(client):
            return
        had_bytes = bool(client.received)
        is_closed = _read_available(client)
        if not client.received and not is_closed:
            return
        if not client.received:
            self._close(client)
            return
        if not had_bytes:
            self._set_deadline(client, time.monotonic() + self._limits.header_timeout)
        if not client.has_header and _has_header(client):
            client.has_header = True
            self._set_deadline(client, time.monotonic() + self._limits.body_timeout)
            _request_body(client)
        # A truncated request gets its error from the worker thread.
        if is_closed or (client.has_header and _has_body(client.received)):
            self._hand_over(client)

    def _shake_hands(self, client: _Client) -> bool:
        sock = client.connection.socket
        try:
            sock.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        except ssl.SSLError as error:
            if error.reason == _PLAIN_HTTP:
                # The method of the base class sends without TLS.
                socket.socket.send(sock, _HTTPS_ONLY)
            raise
        client.needs_handshake = False
        if self._complete_handshake is not None:
            self._complete_handshake(client.connection)
        return True

    def _hand_over(self, client: _Client) -> None:
        connection = client.connection
        self._selector.unregister(connection.socket)
        connection.socket.settimeout(self._limits.idle_timeout)
        connection.rfile = RequestReader(
            connection.socket, bytes(client.received), self._limits.body_timeout
        )
        self._dispatch(connection)

    def _close(self, client: _Client) -> None:
        self._selector.unregister(client.connection.socket)
        client.connection.close()

    def _close_expired(self) -> None:
        moment = time.monotonic()
        if moment < self._earliest_deadline:
            return
        for client in self._list_clients():
            if client.deadline > moment:
                continue
            if client.received:
                missing = 'body' if client.has_header else 'header'
                text = f'The {missing} of the request did not arrive in time.'
                self._refuse(client.connection, HTTPStatus.REQUEST_TIMEOUT, text)
            self._close(client)
        deadlines = (client.deadline for client in self._list_clients())
        self._earliest_deadline = min(deadlines, default=math.inf)


def _read_available(client: _Client) -> bool:
    """Read until nothing is left or enough is received. Return True at the end."""
    sock = client.connection.socket
    while len(client.received) < HEADER_BYTES + _BODY_BYTES:
        try:
            data = sock.recv(_CHUNK)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        if not data:
            return True
        client.received += data
        if len(data) < _CHUNK and not isinstance(sock, ssl.SSLSocket):
            return False  # the next call would only raise BlockingIOError
    return False


def _has_header(client: _Client) -> bool:
    """Check whether the header is complete, or can only be refused."""
    received, start = client.received, client.searched
    if len(received) >= HEADER_BYTES or received.find(_END_OF_HEADER, start) >= 0:
        return True
    client.searched = max(0, len(received) - len(_END_OF_HEADER))
    first_line = received.find(b'\n')
    return first_line > 0 and received[first_line - 1 : first_line] != b'\r'


def _request_body(client: _Client) -> None:
    """Answer a client that waits for a permission to send its body.

    :raises OSError: the connection is lost
    """
    if _has_body(client.received):
        return  # the library answers, or nothing is missing
    end = client.received.find(_END_OF_HEADER)
    expectation = _EXPECT.search(client.received, 0, end + 2)
    if expectation is not None:
        del client.received[slice(*expectation.span())]
        client.connection.socket.send(_CONTINUE)


def _has_body(received: bytearray) -> bool:
    """Check whether a worker thread may handle the request without waiting.

    A worker thread receives a body that is too large to be kept.
    """
    end = received.find(_END_OF_HEADER)
    if end < 0:
        return True  # the worker thread refuses the header
    header = bytes(received[: end + len(_END_OF_HEADER)])
    size = len(received) - len(header)
    if size >= _BODY_BYTES:
        return True
    if _CHUNKED.search(header):
        # The same bytes inside of a chunk only cost a wait in the worker thread.
        return size > 0 and received.endswith(_END_OF_HEADER)
    length = _CONTENT_LENGTH.search(header)
    return length is None or not size < int(length[1]) <= _BODY_BYTES
