# SPDX-License-Identifier: Apache-2.0
"""Rebuilds the handles of instances after a host reboot and reports the result.

A reboot removes all mediated devices and virtual functions, but instances that start
again expect them under the same names. The agent rebuilds them without the conductor.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from oslo_log import log

from cyborg_lite.agent.arqs.preparation import Preparation
from cyborg_lite.agent.devices.device_threads import UNFINISHED, DeviceThreads
from cyborg_lite.agent.inventory.discovery import DRIVER_FAILED, Discovery
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.journal import Journal, NewEvent
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.hosts.events import HostEventKind, RecoveryResult
from cyborg_lite.model.limits import REASON_MAX_LENGTH
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.dispatcher import serves_host
from cyborg_lite.rpc.interface import Agents, Conductor

LOG = log.getLogger(__name__)

_PAUSE: Final = 1.0  # seconds between two attempts
# Seconds for which an attempt waits for the drivers: at the start, and between two
# heartbeats. Longer calls go on in their threads.
_LONGEST_ATTEMPT: Final = 60.0
_LONGEST_REPORTED_ATTEMPT: Final = 5.0


class HostRecovery:
    """Rebuilds handles at each start of the agent. Does nothing if none are missing."""

    def __init__(
        self,
        discovery: Discovery,
        preparation: Preparation,
        cache: Cache,
        journal: Journal,
        patience: float,
    ) -> None:
        # Sets the stored mode of the device at an address, before its handles.
        self.restore_mode: Callable[[str], object] = lambda address: None
        self._discovery = discovery
        self._preparation = preparation
        self._cache = cache
        self._journal = journal
        self._patience = patience  # seconds that vendor drivers may take to initialize
        self._reasons: dict[str, str] = {}  # of failed rebuilds, by handle uuid
        # When to give up handles that only the conductor stores, by the monotonic
        # clock; None: there are none.
        self._deadline: float | None = None
        # Their results are the failures by handle uuid.
        self._threads = DeviceThreads[Mapping[str, str]]('rebuild')

    @serves_host(Agents.read_boot_id)
    def read_boot_id(self) -> str:
        """Return the boot id. The agent serves calls after the rebuild."""
        return self._discovery.host.boot_id

    def rebuild(
        self,
        stopping: threading.Event,
        pause: float = _PAUSE,
        longest_attempt: float = _LONGEST_ATTEMPT,
    ) -> bool:
        """Rebuild all handles, until all are rebuilt or given up, or the agent stops.

        :param pause: seconds between two attempts
        :param longest_attempt: seconds that an attempt waits for the drivers
        :returns: False if no handle had to be rebuilt
        """
        missing = self._list_missing()
        if missing:
            LOG.info('Rebuilding %d handles after a reboot of this host', len(missing))
            self._retry_until_rebuilt(stopping, pause, longest_attempt)
        return bool(missing)

    def report_recovery(self, conductor: Conductor) -> bool:
        """Report rebuilt and lost handles. Return False if another report is needed.

        Handles that the conductor stores and the cache lacks are rebuilt as well: the
        cache may have been lost with the disk.

        :raises CyborgError: the report failed; retry later
        """
        host, stored = self._discovery.host, self._cache.handles
        prepared = [u for u, entry in stored.items() if entry.boot_id == host.boot_id]
        reasons = {
            uuid: reason
            for uuid, reason in self._reasons.items()
            if uuid in stored and uuid not in prepared
        }
        connecting = self._preparation.list_connecting(
            stored[uuid].handle for uuid in prepared
        )
        result = RecoveryResult(
            host.name, host.boot_id, tuple(prepared), reasons, connecting
        )
        expected = conductor.report_recovery(daemon_context(), host.name, result)
        reported = {*reasons, *prepared}
        missing = [
            handle
            for handle in expected
            # A restored database may name a unit that a later ARQ has.
            if handle.uuid not in reported
            and self._preparation.find_holder(handle) is None
        ]
        if not missing:
            self._deadline = None
            return True
        if self._deadline is None:
            self._deadline = time.monotonic() + self._patience
            LOG.warning(
                'Rebuilding %d handles that only the conductor has stored', len(missing)
            )
        self._cache.add_handles(missing)
        failures = self._rebuild_handles(missing, _LONGEST_REPORTED_ATTEMPT)
        if time.monotonic() >= self._deadline:
            self._give_up(missing, failures)
        return False

    def _list_missing(self) -> Sequence[AllocatedHandle]:
        boot_id = self._discovery.host.boot_id
        return [
            entry.handle
            for entry in self._cache.handles.values()
            if entry.boot_id != boot_id and entry.handle.uuid not in self._reasons
        ]

    def _retry_until_rebuilt(
        self, stopping: threading.Event, pause: float, longest_attempt: float
    ) -> None:
        deadline = time.monotonic() + self._patience
        while missing := self._list_missing():
            failures = self._rebuild_handles(missing, longest_attempt)
            if failures and time.monotonic() >= deadline:
                self._give_up(missing, failures)
                return
            if failures and stopping.wait(pause):
                return
            if failures:
                # Devices whose vendor driver has initialized now appear in a new scan.
                self._discovery.scan()

    def _rebuild_handles(
        self, handles: Iterable[AllocatedHandle], longest_attempt: float
    ) -> Mapping[str, str]:
        """Rebuild handles, devices in parallel. Return failures by handle uuid."""
        by_device: dict[str, list[AllocatedHandle]] = defaultdict(list)
        for handle in handles:
            by_device[handle.control_address].append(handle)
        calls = {
            address: partial(self._rebuild_device, on_device)
            for address, on_device in by_device.items()
        }
        results = self._threads.run(calls, longest_attempt)
        failures: dict[str, str] = {}
        for address, on_device in by_device.items():
            unfinished = {handle.uuid: UNFINISHED for handle in on_device}
            failures |= results.get(address, unfinished)
        return failures

    def _rebuild_device(self, handles: Sequence[AllocatedHandle]) -> Mapping[str, str]:
        failures = {}
        for handle in handles:
            try:
                self.restore_mode(handle.control_address)
                self._preparation.rebuild(handle)
            except CyborgError as error:
                LOG.debug('Handle %s is not rebuilt yet: %s', handle.key, error.text)
                failures[handle.uuid] = error.text[:REASON_MAX_LENGTH]
            except Exception:
                # A bug in one driver must not affect the devices of other drivers.
                LOG.exception('Rebuild of handle %s failed', handle.key)
                failures[handle.uuid] = DRIVER_FAILED
        return failures

    def _give_up(
        self, handles: Iterable[AllocatedHandle], failures: Mapping[str, str]
    ) -> None:
        events = []
        for handle in handles:
            reason = failures.get(handle.uuid)
            if reason is None:
                continue
            LOG.error(
                'Handle %s of ARQ %s was not rebuilt within recovery_patience: %s',
                handle.key,
                handle.arq_uuid,
                reason,
            )
            self._reasons[handle.uuid] = reason
            kind = HostEventKind.NOT_REBUILT
            events.append(
                NewEvent(kind, handle.control_address, handle.arq_uuid, reason)
            )
        self._journal.append(events)
