# SPDX-License-Identifier: Apache-2.0
"""Health checks of the API for load balancers; they require no token.

``/healthcheck`` checks the API process. ``/healthcheck/ready`` also checks that a
conductor answers and reads the database.
"""

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import webob
from oslo_config import cfg
from oslo_log import log
from oslo_middleware.healthcheck import Healthcheck

from cyborg_lite.errors.base import CyborgError
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.interface import Conductor
from cyborg_lite.rpc.transport import find_lock_fault

LOG = log.getLogger(__name__)

_PATH: Final = '/healthcheck'
_READY_PATH: Final = '/healthcheck/ready'

# Anybody may call the check, so it must not cause one RPC per request.
_CACHE_SECONDS: Final = 1.0


class HealthcheckMiddleware:
    """Serves the two health checks."""

    def __init__(
        self, application: Any, conf: cfg.ConfigOpts, conductor: Conductor
    ) -> None:
        self._application = application  # WSGI application that serves all other paths
        self._healthcheck = Healthcheck(application, conf)
        self._readiness = Readiness(conductor, lambda: find_lock_fault(conf))

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        application = self._application
        path = environ.get('PATH_INFO')
        if path == _READY_PATH and (failure := self._readiness.find_failure()):
            application = webob.Response(
                status=503, text=f'{failure}\n', content_type='text/plain'
            )
        elif path in (_PATH, _READY_PATH):
            application = self._healthcheck
        body: Iterable[bytes] = application(environ, start_response)
        return body


class Readiness:
    """Asks a conductor for one row of the database, at most once a second."""

    def __init__(
        self,
        conductor: Conductor,
        # find_own_fault: returns why this process can send no calls; empty: it can.
        find_own_fault: Callable[[], str] = str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._conductor = conductor
        self._find_own_fault = find_own_fault
        self._clock = clock
        self._lock = threading.Lock()
        self._failure: str | None = None  # None: ready
        self._valid_until = float('-inf')

    def find_failure(self) -> str | None:
        """Return why no request can be served, or None."""
        with self._lock:
            if self._clock() >= self._valid_until:
                self._ask_conductor()
                self._valid_until = self._clock() + _CACHE_SECONDS
            return self._failure

    def _ask_conductor(self) -> None:
        """Update the failure; log its begin and its end."""
        before, self._failure = self._failure, self._find_own_fault() or None
        try:
            if self._failure is None:
                self._conductor.check_database(daemon_context())
        except CyborgError as error:
            self._failure = error.text
        if self._failure is not None and before is None:
            LOG.warning('This API is not ready: %s', self._failure)
        elif self._failure is None and before is not None:
            LOG.info('This API is ready again.')
