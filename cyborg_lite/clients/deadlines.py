# SPDX-License-Identifier: Apache-2.0
"""Deadlines of whole HTTP answers.

The timeout of a socket limits each read. A server that sends a byte now and then would
keep a caller for ever.
"""

import http.client
import io
import socket
import time
from contextvars import ContextVar
from typing import Any, Final

import requests
from keystoneauth1.session import TCPKeepAliveAdapter

_is_limited: Final = ContextVar('is_limited', default=False)


class _TimedFile(io.RawIOBase):
    """The bytes that a socket receives until a deadline."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._raw = sock.makefile('rb', buffering=0)
        self._timeout = sock.gettimeout()
        # By the monotonic clock; None: no deadline.
        self._deadline: float | None = None
        if self._timeout is not None and _is_limited.get():
            self._deadline = time.monotonic() + self._timeout

    def readable(self) -> bool:
        return True

    # Any: a buffer.
    def readinto(self, buffer: Any) -> int | None:
        """Read at least one byte.

        :raises TimeoutError: none came before the deadline
        """
        if self._deadline is None:
            return self._raw.readinto(buffer)
        seconds = self._deadline - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        self._socket.settimeout(seconds)
        try:
            return self._raw.readinto(buffer)
        finally:
            self._socket.settimeout(self._timeout)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedSocket:
    """A socket, as far as an HTTP response uses it."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedFile(self._socket))


class _TimedResponse(http.client.HTTPResponse):
    # Any: the further arguments of the base class.
    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(_TimedSocket(sock), *args, **options)  # type: ignore[arg-type]  # only `makefile` is used


class DeadlineAdapter(TCPKeepAliveAdapter):
    """Adapter whose timeout limits an answer as a whole, unless it is streamed."""

    # Any, below: arguments of the base class, which has no types.
    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Create the connections with responses that have a deadline."""
        super().init_poolmanager(*args, **options)
        manager = self.poolmanager
        manager.pool_classes_by_scheme = {
            scheme: _limit_responses(pool)
            for scheme, pool in manager.pool_classes_by_scheme.items()
        }

    def send(
        self, request: Any, stream: bool = False, *args: Any, **options: Any
    ) -> requests.Response:
        """Send a request and read the head of its answer."""
        token = _is_limited.set(not stream)
        try:
            response: requests.Response = super().send(
                request, stream, *args, **options
            )
        finally:
            _is_limited.reset(token)
        return response


def _limit_responses(pool: Any) -> Any:
    """Return a class of connection pools whose responses have a deadline."""
    connection = type(
        'Connection', (pool.ConnectionCls,), {'response_class': _TimedResponse}
    )
    return type('Pool', (pool,), {'ConnectionCls': connection})
