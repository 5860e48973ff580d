# SPDX-License-Identifier: Apache-2.0
"""A conductor that is killed at a named step, as if the power had failed.

The steps of a job are its transactions and its calls to others: nothing else of it
outlives the process. ``DIE_AT`` names one and a side of it, e.g. ``before:claim``: the
process sends itself SIGKILL there, the first time it gets so far.
"""

from cyborg_lite import runtime  # isort: skip  # first of all: it may patch

import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.cmd import conductor
from cyborg_lite.db.engine import Database
from cyborg_lite.model.jobs import Job, Kind
from cyborg_lite.rpc.agent import AgentAPI

__all__ = ['STEPS', 'VARIABLE', 'runtime']

VARIABLE: Final = 'CYBORG_LITE_TEST_DIE_AT'

CALLS: Final = {
    'consumer': (Placement, 'consumer'),
    'prepare': (AgentAPI, 'prepare'),
    'release': (AgentAPI, 'release'),
    'post_events': (Nova, 'post_events'),
    'program': (AgentAPI, 'program'),
}
TRANSACTIONS: Final = ('accept', 'claim', 'succeed', 'fail', 'finish', 'cleaned')

# What is done besides where a bitstream is loaded, and where that is undone.
OF_LOADING: Final = ('intend', 'program', 'loaded')
OF_UNDOING: Final = ('program', 'loaded', 'undone')


def both_sides(*names: str) -> tuple[str, ...]:
    return tuple(f'{side}:{name}' for name in names for side in ('before', 'after'))


STEPS: Final = both_sides(
    *TRANSACTIONS, *(call for call in CALLS if call not in OF_LOADING)
)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _arm(step: str) -> None:
    """From now on the process does not survive that step."""
    side, _, name = step.partition(':')
    if name in CALLS:
        owner, method = CALLS[name]
        setattr(owner, method, _dying(getattr(owner, method), side))
        return
    write = Database.write

    # Any: whatever the transaction takes and returns.
    def watched(
        self: Database, work: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        if work.__name__ != name or _is_aside(args):
            return write(self, work, *args, **kwargs)
        return _dying(write, side)(self, work, *args, **kwargs)

    setattr(Database, 'write', watched)  # noqa: B010  # mypy forbids the assignment


def _is_aside(args: tuple[object, ...]) -> bool:
    """Whether it is of a job that may come at any time, and of no request."""
    return any(
        isinstance(one, Job) and one.kind in (Kind.PLACEMENT_SYNC, Kind.AUDIT)
        for one in args
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
        _arm(os.environ[VARIABLE])
    sys.exit(conductor.main())
