# SPDX-License-Identifier: Apache-2.0
"""Calls of a JSON-RPC 2.0 server on a socket of the host, such as that of SPDK."""

import json
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_CHUNK: Final = 1 << 16  # bytes
_MAX_ANSWER: Final = 1 << 24  # bytes
_MAX_REASON: Final = 400  # characters
_UNKNOWN_METHOD: Final = -32601  # JSON-RPC 2.0 specification, section 5.1


class JsonRpcError(Exception):
    """A call failed; the text says why."""

    def __init__(self, reason: str, *, is_unknown: bool = False) -> None:
        super().__init__(reason)
        self.is_unknown = is_unknown  # the server does not have the method


@dataclass(frozen=True, slots=True)
class JsonRpc:
    """A client of one server. Each call opens a connection and is bounded in time."""

    path: Path
    timeout: float  # seconds of one call

    # Any: arguments and results are JSON.
    def call(self, method: str, **params: Any) -> Any:
        """Call a method and return its result.

        :raises JsonRpcError: the server answered with an error, or does not answer; in
            this case the call may be executed
        """
        request: dict[str, Any] = {'jsonrpc': '2.0', 'method': method, 'id': 1}
        if params:
            request['params'] = params
        try:
            answer = self._exchange(json.dumps(request).encode())
        except (OSError, ValueError) as error:
            reason = getattr(error, 'strerror', None) or str(error)
            text = f'{self.path.name} does not answer: {reason}'
            raise JsonRpcError(text) from None
        if not isinstance(answer, dict) or 'error' in answer:
            raise _to_refusal(method, answer)
        return answer.get('result')

    def _exchange(self, request: bytes) -> Any:
        """Send a request; return the first JSON value of the answer.

        :raises OSError: the connection failed or timed out
        :raises ValueError: the answer is no JSON value, or is too long
        """
        deadline = time.monotonic() + self.timeout
        # The path of a socket has at most 107 characters; that of a file has more.
        directory = os.open(self.path.parent, os.O_PATH | os.O_DIRECTORY)
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(self.timeout)
                connection.connect(f'/proc/self/fd/{directory}/{self.path.name}')
                connection.sendall(request)
                return _receive(connection, deadline)
        finally:
            os.close(directory)


# Any: JSON.
def _to_refusal(method: str, answer: Any) -> JsonRpcError:
    error = answer.get('error') if isinstance(answer, dict) else None
    details = error if isinstance(error, dict) else {'message': answer}
    text = str(details.get('message'))[:_MAX_REASON]
    is_unknown = details.get('code') == _UNKNOWN_METHOD
    return JsonRpcError(f'{method} was refused: {text}', is_unknown=is_unknown)


def _receive(connection: socket.socket, deadline: float) -> Any:
    """Return a JSON value. It has no length and no end mark."""
    content = b''
    while len(content) <= _MAX_ANSWER:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError('timed out')
        connection.settimeout(remaining)
        chunk = connection.recv(_CHUNK)
        content += chunk
        try:
            return json.loads(content)
        except ValueError:
            if not chunk:
                raise ValueError('the answer is not JSON') from None
    raise ValueError(f'the answer has more than {_MAX_ANSWER} bytes')
