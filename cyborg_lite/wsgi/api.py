# SPDX-License-Identifier: Apache-2.0
"""The API for any WSGI server: ``cyborg_lite.wsgi.api:application``.

It is configured by files alone: the one that CYBORG_LITE_CONFIG names, or the one in
the default place. Nothing is read or opened before the first request, so that a server
may fork after it has loaded this module.
"""

import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

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
    # How requests run side by side is the affair of the server that loaded us, so
    # nothing may be patched. This precedes the first import that would do so.
    os.environ['CYBORG_LITE_CONCURRENCY'] = 'threading'
    from cyborg_lite.cmd import api

    found: Application = api.application_from_files()
    return found


application = LazyApplication(from_files)
