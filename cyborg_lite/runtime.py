# SPDX-License-Identifier: Apache-2.0
"""Selects the concurrency backend of this process: native threads or eventlet.

Every entry point imports this module first, because monkey patching must precede the
import of the libraries that it patches. The backend is therefore selected by an
environment variable: no configuration file has been parsed yet.

With native threads the import of eventlet is refused. oslo.service installs eventlet,
and other libraries import it only to check whether it is active. The import takes 12
to 20 MB of each process: 36 % of an agent, 26 % of a conductor, 16 % of an API.
"""

import logging
import os
import sys
import warnings
from typing import Final

VARIABLE: Final = 'CYBORG_LITE_CONCURRENCY'
BACKENDS: Final = ('threading', 'eventlet')

# Libraries that keep references to unpatched primitives if they are imported earlier.
_IMPORTED_AFTER_PATCHING: Final = (
    'urllib3',
    'oslo_context.context',
    'oslo_messaging',
    'sqlalchemy',
    'openstack',
)

BACKEND: Final = os.environ.get(VARIABLE, 'threading').lower()


def _select_backend() -> None:
    """Initialize the backend that the environment variable names.

    :raises SystemExit: the backend is unknown, or patching comes too late
    """
    if BACKEND not in BACKENDS:
        raise SystemExit(f'{VARIABLE} must be one of {", ".join(BACKENDS)}: {BACKEND}')
    # The deprecation warning of eventlet is for developers, and would precede the
    # output of every command.
    warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')
    if BACKEND == 'eventlet':
        imported = sorted(
            name for name in _IMPORTED_AFTER_PATCHING if name in sys.modules
        )
        if imported:
            raise SystemExit(f'imported before monkey patching: {", ".join(imported)}')
        import eventlet

        eventlet.monkey_patch()
        _patch_thread_join()
    else:
        # A WSGI server may have imported it earlier. None makes an import raise
        # ModuleNotFoundError, see "The module cache" in the Python reference.
        sys.modules.setdefault('eventlet', None)  # type: ignore[arg-type]  # typeshed omits None
    from oslo_service import backend

    backend.init_backend(backend.BackendType(BACKEND))


def forget_parent() -> None:
    """Separate a forked process from its parent.

    With eventlet, oslo.log locks a handler by a pipe, which a fork would share: a
    worker that is killed while it logs would keep the lock of all processes.
    """
    if BACKEND == 'eventlet':
        from eventlet import hubs

        hubs.use_hub()
        for handler in logging.root.handlers:
            handler.createLock()


def _patch_thread_join() -> None:
    """Make a thread join with a timeout return at the timeout.

    Since Python 3.13, the join of eventlet raises Timeout instead.
    """
    from eventlet import Timeout
    from eventlet.green import thread

    handle = getattr(thread, '_ThreadHandle', None)
    if handle is None:
        return
    unpatched_join = handle.join

    def join(self: object, timeout: float | None = None) -> None:
        with Timeout(timeout, False):  # False: leave the block without an exception
            unpatched_join(self)

    handle.join = join


_select_backend()
