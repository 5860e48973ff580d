# SPDX-License-Identifier: Apache-2.0
"""Prepares handles of instances again that the host has lost without a reboot.

If a vendor driver is unloaded, its vGPUs and virtual functions disappear, and the
driver does not create them again. A failed repair is reported, and repeated after each
scan: the vendor driver may be loaded again.
"""

import threading
from collections.abc import Iterable, Mapping
from queue import Queue

from oslo_log import log

from cyborg_lite.agent.arqs.preparation import Preparation
from cyborg_lite.agent.inventory.discovery import DRIVER_FAILED
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.journal import Journal, NewEvent
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.hosts.events import HostEventKind

LOG = log.getLogger(__name__)


class HandleRepair:
    """Checks and repairs all prepared handles after each scan.

    It runs in a thread of its own, because a device that hangs must not delay scans.
    """

    def __init__(
        self,
        preparation: Preparation,
        cache: Cache,
        journal: Journal,
        stopping: threading.Event,
    ) -> None:
        self._preparation = preparation
        self._cache = cache
        self._journal = journal
        self._stopping = stopping
        self._wake_event = threading.Event()
        self._failures: Mapping[str, str] = {}  # last reported, by handle uuid
        self._abandoned: Queue[AllocatedHandle] = Queue()
        self._unknown: Queue[AllocatedHandle] = Queue()
        self._not_adopted: dict[str, str] = {}  # reported reasons, by handle uuid

    def wake(self) -> None:
        """Start a repair now, after a scan, or end the loop if the agent stops."""
        self._wake_event.set()

    def release_later(self, handles: Iterable[AllocatedHandle]) -> None:
        """Release handles that no ARQ owns any more, before the next repair."""
        for handle in handles:
            self._abandoned.put(handle)
        self.wake()

    def adopt_later(self, handles: Iterable[AllocatedHandle]) -> None:
        """Store handles of bound ARQs that are prepared, before the next repair."""
        for handle in handles:
            self._unknown.put(handle)
        self.wake()

    def run(self) -> None:
        """Repair handles after each wake-up, until the stop event is set.

        The first repair starts at once.
        """
        while not self._stopping.is_set():
            self._wake_event.clear()
            try:
                self.release_abandoned()
                self.adopt_unknown()
                self.repair_handles()
            except Exception:
                # A bug in one repair must not end the loop.
                LOG.exception('Check of the prepared handles failed')
            self._wake_event.wait()

    def release_abandoned(self) -> None:
        """Release the handles passed to ``release_later``."""
        abandoned = []
        while not self._abandoned.empty():
            abandoned.append(self._abandoned.get())
        # A handle that was released meanwhile may be in a cleaning run, or free.
        stored = self._cache.handles
        handles = [
            handle
            for handle in abandoned
            if handle.uuid in stored
            and stored[handle.uuid].handle.generation == handle.generation
        ]
        if not handles:
            return
        try:
            self._preparation.release(handles)
        except CyborgError as error:
            # The next comparison with the conductor finds the handles again.
            LOG.error('Cannot release all handles without an ARQ: %s', error.text)

    def adopt_unknown(self) -> None:
        """Adopt the handles passed to ``adopt_later``; report each failure once."""
        while not self._unknown.empty():
            handle = self._unknown.get()
            try:
                self._preparation.adopt(handle)
                continue
            except ServiceUnavailable:
                continue  # the next comparison finds the handle again
            except CyborgError as error:
                failure = error.text
            except Exception:
                LOG.exception('Check of handle %s failed', handle.key)
                failure = DRIVER_FAILED
            if self._not_adopted.get(handle.uuid) == failure:
                continue
            self._not_adopted[handle.uuid] = failure
            LOG.error(
                'ARQ %s is bound, but its handle is not known to be prepared. Shelve '
                'and unshelve the instance. %s',
                handle.arq_uuid,
                failure,
            )
            kind, address = HostEventKind.NOT_REBUILT, handle.control_address
            self._journal.append([NewEvent(kind, address, handle.arq_uuid, failure)])

    def repair_handles(self) -> None:
        """Repair each handle, and report each new failure once."""
        handles = [entry.handle for entry in self._cache.handles.values()]
        busy_devices: set[str] = set()
        failures = {
            handle.uuid: self._repair_handle(handle, busy_devices) for handle in handles
        }
        events = []
        for handle in handles:
            failure = failures[handle.uuid]
            if failure and failure != self._failures.get(handle.uuid):
                LOG.error(
                    'Handle %s of ARQ %s is lost and cannot be prepared again: %s',
                    handle.key,
                    handle.arq_uuid,
                    failure,
                )
                kind = HostEventKind.NOT_REBUILT
                events.append(
                    NewEvent(kind, handle.control_address, handle.arq_uuid, failure)
                )
        self._journal.append(events)
        self._failures = failures

    def _repair_handle(self, handle: AllocatedHandle, busy_devices: set[str]) -> str:
        """Repair a handle. Return the reason if it is lost, or an empty string.

        :param busy_devices: addresses of devices that another call changes, or whose
            driver does not answer; a wait for each of their handles would delay other
            devices
        """
        address, previous = handle.control_address, self._failures.get(handle.uuid, '')
        if address in busy_devices:
            return previous
        try:
            self._preparation.restore(handle)
        except ServiceUnavailable:
            busy_devices.add(address)
            return previous
        except CyborgError as error:
            return error.text
        except Exception:
            # A bug in one driver must not affect the devices of other drivers.
            LOG.exception('Check of handle %s failed', handle.key)
            return DRIVER_FAILED
        return ''
