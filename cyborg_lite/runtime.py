# SPDX-License-Identifier: Apache-2.0
"""Chooses how this process runs things side by side: native threads or eventlet.

Every entry point imports this module on its first line, before anything else of
ours, because monkey patching must precede the libraries it patches. The choice is
read from the environment and not from a file: it must be made before any
configuration can be parsed.
"""

import os
import sys
import warnings
from typing import Final

VARIABLE: Final = 'CYBORG_LITE_CONCURRENCY'
BACKENDS: Final = ('threading', 'eventlet')

# Libraries that keep references to unpatched primitives once imported.
_MUST_COME_AFTER: Final = (
    'urllib3',
    'oslo_context.context',
    'oslo_messaging',
    'sqlalchemy',
    'openstack',
)

BACKEND: Final = os.environ.get(VARIABLE, 'threading').lower()


def _choose() -> None:
    if BACKEND not in BACKENDS:
        raise SystemExit(f'{VARIABLE} must be one of {", ".join(BACKENDS)}: {BACKEND}')
    # Libraries import eventlet only to see whether it is in charge. Its notice is for
    # developers, and would stand before the output of every command.
    warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')
    if BACKEND == 'eventlet':
        early = sorted(name for name in _MUST_COME_AFTER if name in sys.modules)
        if early:
            raise SystemExit(f'imported before monkey patching: {", ".join(early)}')
        import eventlet

        eventlet.monkey_patch()
        _mend_joins()
    from oslo_service import backend

    backend.init_backend(backend.BackendType(BACKEND))


def _mend_joins() -> None:
    """From Python 3.13 on, a join with a limit raises where it should return."""
    from eventlet import Timeout
    from eventlet.green import thread

    handle = getattr(thread, '_ThreadHandle', None)
    if handle is None:
        return
    wait = handle.join

    def join(self: object, timeout: float | None = None) -> None:
        with Timeout(timeout, False):  # silent
            wait(self)

    handle.join = join


_choose()
