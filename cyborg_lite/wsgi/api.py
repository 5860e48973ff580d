# SPDX-License-Identifier: Apache-2.0
"""WSGI entry point of the API: ``cyborg_lite.wsgi.api:application``.

The configuration file is the one in CYBORG_LITE_CONFIG, or the default one. The module
imports all libraries, but reads and opens nothing before the first request. A server
that imports the module before it forks shares their memory between its processes.
"""

import os

# The WSGI server decides how requests run concurrently, so nothing may be patched.
os.environ['CYBORG_LITE_CONCURRENCY'] = 'threading'

from cyborg_lite import runtime  # isort: skip

import threading
from collections.abc import Callable, Iterable
from typing import Any

from cyborg_lite.cmd.daemons import api_application
from cyborg_lite.cmd.runner import garbage_collection

__all__ = ['Application', 'LazyApplication', 'application', 'runtime']

Application = Callable[[dict[str, Any], Any], Iterable[bytes]]  # PEP 3333


class LazyApplication:
    """Builds the application at the first request; concurrent requests wait for it."""

    def __init__(self, build: Callable[[], Application]) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._application: Application | None = None

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if self._application is None:
            with self._lock:
                if self._application is None:
                    self._application = self._build()
        return self._application(environ, start_response)


# A collection after a fork would copy each page that the processes share.
garbage_collection.exempt_objects_of_start()
application = LazyApplication(api_application.build_from_files)
