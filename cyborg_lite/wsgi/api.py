# SPDX-License-Identifier: Apache-2.0
"""The API for any WSGI server: ``cyborg_lite.wsgi.api:application``.

It is configured by files alone: the one that CYBORG_LITE_CONFIG names, or the one in
the default place. Nothing is read or opened before the first request, so that a server
may fork after it has loaded this module.
"""

import os

# How requests run side by side is the affair of the server that loads us, so nothing
# may be patched. And eventlet, which libraries import to see whether it is in charge,
# must be imported here and not by the first request: the thread that does so can never
# be joined, and a server that does join its threads would not end.
os.environ['CYBORG_LITE_CONCURRENCY'] = 'threading'

from cyborg_lite import runtime  # isort: skip

import threading
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ['Application', 'LazyApplication', 'application', 'from_files', 'runtime']

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]  # as WSGI has it


class LazyApplication:
    """Built by whichever request comes first; the others wait for it."""

    def __init__(self, build: Callable[[], Application]) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._built: Application | None = None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if self._built is None:
            with self._lock:
                if self._built is None:
                    self._built = self._build()
        return self._built(environ, start_response)


def from_files() -> Application:
    """The application as the configuration files have it."""
    from cyborg_lite.cmd import api

    found: Application = api.application_from_files()
    return found


application = LazyApplication(from_files)
