# SPDX-License-Identifier: Apache-2.0
"""Conductor that is killed at a named step, as in a power failure.

The steps of a job are its transactions and its calls to other services: only their
effects outlive the process. ``DIE_AT`` names a step and a side, for example
``before:finish_job``.
The process sends itself SIGKILL the first time it reaches the step.
"""

from cyborg_lite import runtime  # isort: skip  # first of all: it may patch

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.cmd.daemons import conductor
from cyborg_lite.db.arqs import binding, release
from cyborg_lite.db.bitstreams import loaded_regions, programming
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.rpc.transport import Caller

__all__ = ['STEPS', 'VARIABLE', 'runtime']

VARIABLE: Final = 'CYBORG_LITE_TEST_DIE_AT'

CALLS: Final = {
    'find_consumer': (Placement, 'find_consumer'),
    'prepare': (Caller, 'send'),
    'release': (Caller, 'send'),
    'post_events': (Nova, 'post_events'),
    'program': (Caller, 'send'),
}
# The names come from the functions, so that a rename fails at import.
TRANSACTIONS: Final = tuple(
    transaction.__name__
    for transaction in (
        binding.accept_bind,
        binding.claim_for_bind,
        binding.complete_bind,
        binding.fail_bind,
        queue.finish_job,
        release.record_release,
    )
)

# Additional steps of a bind that programs, and of its release.
OF_LOADING: Final = (
    loaded_regions.record_bind_load.__name__,
    'program',
    programming.record_load.__name__,
)
OF_UNDOING: Final = (
    'program',
    programming.record_load.__name__,
    release.record_restore.__name__,
)


def both_sides(*names: str) -> tuple[str, ...]:
    return tuple(f'{side}:{name}' for name in names for side in ('before', 'after'))


STEPS: Final = both_sides(
    *TRANSACTIONS, *(call for call in CALLS if call not in OF_LOADING)
)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm(step: str) -> None:
    """Patch the step so that the process is killed there."""
    # Any, in this function: arguments and result of the step.
    side, _, name = step.partition(':')
    if name in CALLS:
        owner, method = CALLS[name]
        act = getattr(owner, method)
        dying = _dying(act, side)

        def call(*args: Any, **kwargs: Any) -> Any:
            is_other = owner is Caller and args[-1].method != name
            return (act if is_other else dying)(*args, **kwargs)

        setattr(owner, method, call)
        return
    write = Database.write

    def run_step(
        self: Database, work: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        if name_transaction(work) != name or _is_aside(args):
            return write(self, work, *args, **kwargs)
        return _dying(write, side)(self, work, *args, **kwargs)

    setattr(Database, 'write', run_step)  # noqa: B010  # mypy forbids the assignment


def name_transaction(work: Callable[..., Any]) -> str:
    """Return the name of a transaction, also of one given as ``functools.partial``."""
    while isinstance(work, partial):
        work = work.func
    return getattr(work, '__name__', '')


def _is_aside(args: tuple[object, ...]) -> bool:
    """Check whether the call belongs to a periodic job and to no ARQ."""
    return any(
        isinstance(argument, Job)
        and argument.type in (OperationKind.RECONCILE, OperationKind.AUDIT)
        for argument in args
    )


def _dying(act: Callable[..., Any], side: str) -> Callable[..., Any]:
    def dying(*args: Any, **kwargs: Any) -> Any:
        if side == 'before':
            _die()
        result = act(*args, **kwargs)
        _die()
        return result

    return dying


if __name__ == '__main__':
    if os.environ.get(VARIABLE):
        arm(os.environ[VARIABLE])
    sys.exit(conductor.main())
