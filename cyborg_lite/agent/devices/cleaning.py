# SPDX-License-Identifier: Apache-2.0
"""Cleans units in background threads, by calling the drivers.

A cleaning run destroys data, so a stale order must never start one. Orders are
numbered: the agent ignores an order that is older than another one for the same unit. A
start names the session of the agent process. An order from before a restart is
therefore refused.

Results are kept in memory only. After a restart the conductor orders the cleaning run
again, with the steps that it has stored as completed.
"""

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from oslo_log import log

from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.agent.inventory.discovery import DRIVER_FAILED, Discovery
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.drivers.base import CleansHandles
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.devices import CleanAborted
from cyborg_lite.errors.drivers import DeviceBusy, DeviceGone, DriverError
from cyborg_lite.model.devices.cleaning import (
    MAX_PROOF,
    MAX_STEP_NAME,
    MAX_STEPS,
    RESET_STEP,
    CleanOrder,
    CleanProgress,
    CleanProgressState,
    CleanStep,
    CleanStepResult,
    list_completed,
    merge_results,
)
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.limits import REASON_MAX_LENGTH
from cyborg_lite.rpc.dispatcher import serves_host
from cyborg_lite.rpc.interface import Agents

LOG = log.getLogger(__name__)

_RESULT_LIFETIME: Final = 3600.0  # seconds for which a result is valid
_LOCKED: Final = 'Another call changes the device.'


@dataclass(slots=True)
class _Run:
    """The work for one order. Only its thread changes it."""

    order: CleanOrder
    progress: CleanProgress
    abort: threading.Event = field(default_factory=threading.Event)
    ended_at: float | None = None  # by the monotonic clock


def _start_thread(work: Callable[[], None], name: str) -> None:
    """Do a cleaning run in a daemon thread, because a step may never return."""
    threading.Thread(target=work, name=name, daemon=True).start()


class Cleaning:
    """Cleans units, one at a time per device."""

    def __init__(
        self,
        discovery: Discovery,
        cache: Cache,
        locks: DeviceLocks,
        start_thread: Callable[[Callable[[], None], str], None] = _start_thread,
        read_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._start_thread = start_thread  # starts a thread, under a name
        self._read_clock = read_clock
        self._discovery = discovery
        self._cache = cache  # the prepared handles, whose units must not be cleaned
        self._locks = locks  # shared with all components that change devices
        self._session = secrets.token_hex(8)
        self._guard = threading.Lock()
        self._runs: dict[str, _Run] = {}  # the latest, by uuid of the handle
        # Called with the address of a device that was reset, and why it is not the same
        # as before; empty: it is.
        self.on_reset: Callable[[str, str], None] = lambda address, fault: None

    @serves_host(Agents.read_cleaning)
    def read(self, order: CleanOrder) -> CleanProgress:
        """Return what this process has done for an order."""
        with self._guard:
            run = self._find_run(order)
            return self._build_unknown() if run is None else run.progress

    @serves_host(Agents.start_cleaning)
    def start(self, order: CleanOrder, session: str) -> CleanProgress:
        """Start the cleaning run in the background, unless it has started."""
        driver = self._find_driver(order.handle)
        with self._guard:
            if session != self._session:
                raise _refuse(order, 'it is from before a restart of the agent')
            run = self._find_run(order)
            is_waiting = run and run.progress.state is CleanProgressState.WAITING
            if run is not None and not is_waiting:
                return run.progress
            self._check_unused(order)
            results = () if run is None else run.progress.results
            completed = (*order.completed, *list_completed(results))
            progress = replace(
                self._build_unknown(), state=CleanProgressState.RUNNING, results=results
            )
            run = _Run(replace(order, completed=completed), progress)
            self._runs[order.handle.uuid] = run
        self._start_thread(lambda: self._run(run, driver), f'clean-{order.number}')
        return run.progress

    @serves_host(Agents.abort_cleaning)
    def abort(self, order: CleanOrder) -> CleanProgress:
        """Start no further step and abort an abortable one; return the progress."""
        with self._guard:
            run = self._find_run(order)
            if run is None:
                return self._build_unknown()
            run.abort.set()
            return run.progress

    def _find_run(self, order: CleanOrder) -> _Run | None:
        """Return the run of an order. The caller holds the guard.

        :raises DriverError: a later order exists for the unit
        """
        run = self._runs.get(order.handle.uuid)
        if run is None or run.order.number < order.number:
            return None
        if run.order.number > order.number:
            raise _refuse(order, 'a later one exists')
        return None if self._is_outdated(run, order) else run

    def _is_outdated(self, run: _Run, order: CleanOrder) -> bool:
        """Check whether a result may be of an earlier run with the same number.

        A database that is restored from a backup uses numbers again. The unit then has
        data of another user. An unnecessary clean does no harm.
        """
        if run.order.handle.generation != order.handle.generation:
            return True
        ended_at = run.ended_at
        return (
            ended_at is not None and self._read_clock() - ended_at >= _RESULT_LIFETIME
        )

    def _build_unknown(self) -> CleanProgress:
        return CleanProgress(CleanProgressState.UNKNOWN, self._session)

    def _find_driver(self, handle: AllocatedHandle) -> CleansHandles:
        driver = self._discovery.find_driver(handle.control_address)
        if driver is None:
            raise DeviceGone(address=handle.control_address)
        if not isinstance(driver, CleansHandles):
            reason = f'Driver {driver.NAME} declares no cleaning steps.'
            raise DriverError(reason=reason)
        return driver

    def _check_unused(self, order: CleanOrder) -> None:
        """Check that no instance has the unit, under any uuid.

        A database that was lost gives its handles other uuids.

        :raises DriverError: an instance has
        """
        handle = order.handle
        unit = handle.control_address, handle.key
        if any(
            handle.uuid == uuid
            or unit == (entry.handle.control_address, entry.handle.key)
            for uuid, entry in self._cache.handles.items()
        ):
            raise _refuse(order, 'an instance has the unit')

    # --- the thread of a cleaning run ---

    def _run(self, run: _Run, driver: CleansHandles) -> None:
        handle = run.order.handle
        try:
            with self._locks.lock(handle.control_address):
                # The lock may have been waited for.
                self._check_unused(run.order)
                self._run_steps(run, driver)
            self._end(run, CleanProgressState.SUCCEEDED, '')
            LOG.info('Unit %s is clean', handle.key)
        except DeviceBusy as error:
            self._end(run, CleanProgressState.WAITING, error.text)
        except ServiceUnavailable:
            self._end(run, CleanProgressState.WAITING, _LOCKED)
        except CyborgError as error:
            LOG.error('Cleaning unit %s failed: %s', handle.key, error.text)
            if handle.key == handle.control_address:
                self.on_reset(handle.control_address, error.text)
            self._end(run, CleanProgressState.FAILED, error.text)
        except Exception:  # a bug in a driver must not leave the clean running for ever
            LOG.exception('Cleaning unit %s failed', handle.key)
            self._end(run, CleanProgressState.FAILED, DRIVER_FAILED)

    def _run_steps(self, run: _Run, driver: CleansHandles) -> None:
        """Run all steps that are not completed.

        :raises DriverError: a step failed
        """
        steps = tuple(driver.list_clean_steps(run.order.handle))
        check_steps(steps)
        with self._guard:
            run.progress = replace(run.progress, steps=steps)
        for step in steps:
            if step.name not in run.order.completed:
                self._run_step(run, driver, step)

    def _run_step(self, run: _Run, driver: CleansHandles, step: CleanStep) -> None:
        handle = run.order.handle
        if run.abort.is_set():
            raise CleanAborted()
        LOG.info('Clean step %s of unit %s starts', step.name, handle.key)
        result = CleanStepResult(step.name, datetime.now(UTC))
        self._record(run, result)
        abort = run.abort if step.abortable else threading.Event()
        try:
            proof = driver.run_clean_step(handle, step.name, abort)
        except CyborgError as error:
            finished, text = datetime.now(UTC), error.text[:REASON_MAX_LENGTH]
            self._record(run, replace(result, finished_at=finished, error=text))
            raise
        proof = ''.join(filter(str.isprintable, proof))[:MAX_PROOF]
        self._record(run, replace(result, finished_at=datetime.now(UTC), proof=proof))
        # The reset of a virtual function does not concern the device.
        if step.name == RESET_STEP and handle.key == handle.control_address:
            self.on_reset(handle.control_address, '')

    def _record(self, run: _Run, result: CleanStepResult) -> None:
        with self._guard:
            results = merge_results(run.progress.results, (result,))
            run.progress = replace(run.progress, results=results)

    def _end(self, run: _Run, state: CleanProgressState, reason: str) -> None:
        with self._guard:
            reason = reason[:REASON_MAX_LENGTH]
            run.progress = replace(run.progress, state=state, reason=reason)
            run.ended_at = self._read_clock()


def check_steps(steps: Sequence[CleanStep]) -> None:
    """Check the steps that a driver declares.

    :raises DriverError: there are none, too many, or two with the same name
    """
    names = [step.name for step in steps]
    if not 1 <= len(set(names)) == len(names) <= MAX_STEPS:
        reason = f'The driver declares {len(names)} cleaning steps, or a name twice.'
        raise DriverError(reason=reason)
    if any(not 1 <= len(name) <= MAX_STEP_NAME for name in names):
        raise DriverError(reason='The name of a cleaning step is empty or too long.')


def _refuse(order: CleanOrder, reason: str) -> DriverError:
    text = f'The order to clean unit {order.handle.key} is refused: {reason}.'
    return DriverError(reason=text)
