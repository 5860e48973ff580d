# SPDX-License-Identifier: Apache-2.0
"""Emulated kernel in the test process, used by daemons in other processes.

A daemon runs as this module. The environment names the module of the daemon and the
address of the kernel, with the key of its callers. Calls of the kernel interface are
forwarded to the test process.
"""

from cyborg_lite import runtime  # isort: skip  # first of all: it may patch

import importlib
import os
import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import (
    Client,
    Connection,
    Listener,
    answer_challenge,
    deliver_challenge,
)
from pathlib import Path
from typing import Any, Final

from cyborg_lite.drivers.host.kernel import Kernel, PrivilegedKernel

__all__ = ['KernelService', 'runtime']

_NAME: Final = 'CYBORG_LITE_TEST_KERNEL'
_KEY: Final = 'CYBORG_LITE_TEST_KERNEL_KEY'
_DAEMON: Final = 'CYBORG_LITE_TEST_DAEMON'


class KernelService:
    """Serves a kernel until it is closed; each change on a thread of its own."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._name = f'cyborg-lite-{uuid.uuid4().hex}'
        # Every user of the machine can connect to an abstract address.
        self._key = uuid.uuid4().hex
        self._listener = Listener(f'\0{self._name}', 'AF_UNIX')
        threading.Thread(target=self._serve, daemon=True).start()

    def environment(self, daemon: str) -> dict[str, str]:
        """Return the environment of a process that runs a daemon module."""
        return {_NAME: self._name, _KEY: self._key, _DAEMON: daemon}

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                caller = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._answer, args=(caller,), daemon=True).start()

    def _answer(self, caller: 'Connection[Any, Any]') -> None:
        with caller:
            try:
                deliver_challenge(caller, self._key.encode())
                answer_challenge(caller, self._key.encode())
                name, arguments = caller.recv()
            except (AuthenticationError, EOFError, OSError):
                return  # a stranger, or the process was killed
            try:
                answer = getattr(self._kernel, name)(*arguments)
            except OSError as error:
                answer = error
            try:
                caller.send(answer)
            except OSError:
                return  # the process was killed


# Any: the methods return various types.
def build_forwarder(name: str) -> Callable[..., Any]:
    """Return a replacement of a kernel method that forwards the call."""

    def ask(
        _self: PrivilegedKernel, root: Path, *arguments: str | Sequence[str]
    ) -> Any:
        address = f'\0{os.environ[_NAME]}'
        key = os.environ[_KEY].encode()
        with Client(address, 'AF_UNIX', authkey=key) as kernel:
            kernel.send((name, (root, *arguments)))
            answer = kernel.recv()
        if isinstance(answer, OSError):
            raise answer
        return answer

    return ask


if __name__ == '__main__':
    for method in ('write', 'run', 'load', 'holders'):
        setattr(PrivilegedKernel, method, build_forwarder(method))
    sys.exit(importlib.import_module(os.environ[_DAEMON]).main())
