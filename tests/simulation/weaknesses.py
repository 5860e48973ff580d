# SPDX-License-Identifier: Apache-2.0
"""Weaknesses that are planted into the service, each of which a seed must find."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import text

from cyborg_lite.agent.arqs.preparation import Preparation
from cyborg_lite.agent.devices.device_threads import DeviceThreads
from cyborg_lite.conductor.arqs.unowned_handles import UnownedHandles
from cyborg_lite.db.arqs import binding, claiming
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.rpc.security.replay import ReplayGuard
from tests.simulation.hosts import Cards


def _leak() -> None:
    """Keep released handles prepared on the cards."""
    Cards.is_leaking = True


def _forget_erasing() -> None:
    """End cleaning runs that erase nothing."""
    Cards.is_forgetting = True


def _share_preparation() -> None:
    """Let a failing call release what another one prepares; confirm nothing."""

    @contextmanager
    def accept(
        self: Any, handles: Sequence[AllocatedHandle]
    ) -> Iterator[Sequence[AllocatedHandle]]:
        with self._guard:
            self._cache.add_handles(handles)
        yield handles

    _replace(Preparation, '_accept', accept)
    _replace(binding, '_check_confirmed', _do_nothing)


def _find_no_uses() -> None:
    """Release handles without an ARQ in the database, whoever uses them."""
    _replace(UnownedHandles, '_find_uses', lambda *_arguments: {})


def _ignore_leases() -> None:
    """Let a conductor end a job that another one has leased meanwhile."""
    for name in ('finish_job', '_change'):
        _replace(queue, name, _take_lease(vars(queue)[name]))


# Any: the parameters of the function.
def _take_lease(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(session: Any, job: Any, *arguments: Any) -> Any:
        query = text('SELECT owner, lease FROM jobs WHERE uuid = :uuid')
        row = session.execute(query, {'uuid': job.uuid}).first()
        if row is not None:
            job = replace(job, owner=row.owner, lease=row.lease)
        return function(session, job, *arguments)

    return call


def _compare_nothing() -> None:
    """Claim handles without a comparison with the allocation and the profile."""
    _replace(claiming, 'check_amounts', _do_nothing)
    _replace(claiming, 'check_deployable', _do_nothing)


def _accept_repetitions() -> None:
    """Serve a message that was recorded and is sent again."""
    _replace(ReplayGuard, 'accept', lambda *_arguments: True)
    _replace(Database, 'once', lambda *_arguments: nullcontext())


def _wait_for_devices() -> None:
    """Wait without limit for the driver of each device."""

    def run(
        _self: Any, calls: Mapping[str, Callable[[], Any]], _longest: float
    ) -> Mapping[str, Any]:
        return {address: call() for address, call in calls.items()}

    _replace(DeviceThreads, 'run', run)


# Any: a module or a class, and a function of it.
def _replace(owner: Any, name: str, function: Any) -> None:
    assert hasattr(owner, name), f'{owner} has no {name}'
    setattr(owner, name, function)


def _do_nothing(*_arguments: object) -> None:
    pass


WEAKNESSES: Final[Mapping[str, Callable[[], None]]] = {
    'leaking-cards': _leak,
    'no-erasing': _forget_erasing,
    'shared-preparation': _share_preparation,
    'no-uses': _find_no_uses,
    'no-leases': _ignore_leases,
    'no-comparison': _compare_nothing,
    'no-replay-guard': _accept_repetitions,
    'hung-device': _wait_for_devices,
}
PLANS: Final[Mapping[str, Sequence[str]]] = {
    'shared-preparation': ('outlast_calls', 'outlast_calls', 'kill_conductor')
}
"""Faults that find a weakness sooner than random ones do."""
