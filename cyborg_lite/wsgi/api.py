# SPDX-License-Identifier: Apache-2.0
"""WSGI entry point of the API: ``cyborg_lite.wsgi.api:application``.

The configuration file is the one in CYBORG_LITE_CONFIG, or the default one. The module
reads and opens nothing before the first request, so that a server may fork after it has
imported the module.
"""

import os

# The WSGI server decides how requests run concurrently, so nothing may be patched.
os.environ['CYBORG_LITE_CONCURRENCY'] = 'threading'

from cyborg_lite import runtime  # isort: skip

import threading
from collections.abc import Callable, Iterable
from typing import Any

__all__ = [
    'Application',
    'LazyApplication',
    'application',
    'load_application',
    'runtime',
]

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


def load_application() -> Application:
    """Build the application from the configuration files."""
    from cyborg_lite.cmd import api

    application: Application = api.application_from_files()
    return application


application = LazyApplication(load_application)
