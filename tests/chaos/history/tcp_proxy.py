# SPDX-License-Identifier: Apache-2.0
"""TCP proxy whose connections a test cuts, stops or makes lose answers."""

import enum
import socket
import threading
from contextlib import suppress
from typing import Final, Self

_SIZE: Final = 1 << 16


class Mode(enum.StrEnum):
    """Behaviour of all connections of a proxy."""

    PASS = 'pass'
    CUT = 'cut'  # connections are closed, also new ones
    BLACKHOLE = 'blackhole'  # nothing arrives until the mode changes
    LOSE = 'lose'  # requests arrive; a connection is closed instead of its answer


class TcpProxy:
    """Proxy on a free port before a server."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._mode = Mode.PASS
        self._changed = threading.Condition()
        self._sockets: set[socket.socket] = set()
        self._listener = socket.create_server(('127.0.0.1', 0), backlog=64)

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def set(self, mode: Mode) -> None:
        """Change the behaviour of all connections."""
        with self._changed:
            self._mode = mode
            self._changed.notify_all()
        if mode is Mode.CUT:
            self._close_connections()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *trouble: object) -> None:
        # A shutdown also ends the accept() of the thread.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.set(Mode.CUT)

    def _close_connections(self) -> None:
        with self._changed:
            sockets, self._sockets = self._sockets, set()
        for connection in sockets:
            _close(connection)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(self._target, timeout=5)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        for connection in (client, server):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._changed:
            is_cut = self._mode is Mode.CUT
            if not is_cut:
                self._sockets |= {client, server}
        if is_cut:
            client.close()
            server.close()
            return
        for source, target, is_answer in (
            (client, server, False),
            (server, client, True),
        ):
            threading.Thread(
                target=self._pump, args=(source, target, is_answer), daemon=True
            ).start()

    def _pump(
        self, source: socket.socket, target: socket.socket, is_answer: bool
    ) -> None:
        with suppress(OSError):
            while data := source.recv(_SIZE):
                with self._changed:
                    self._changed.wait_for(lambda: self._mode is not Mode.BLACKHOLE)
                    mode = self._mode
                if mode is Mode.LOSE and is_answer:
                    break
                target.sendall(data)
        with self._changed:
            self._sockets -= {source, target}
        _close(source)
        _close(target)


def _close(connection: socket.socket) -> None:
    """Close a connection, also for a thread that reads from it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
