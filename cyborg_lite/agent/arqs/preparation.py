# SPDX-License-Identifier: Apache-2.0
"""Prepares attach handles for instances and releases them, by calling the drivers.

The agent stores a handle before it prepares the handle, and the result before it
answers. After a crash the next process therefore finds all objects of this service.

After a pause the agent may receive stale RPCs out of order. Each handle carries a
generation; calls with an older one are ignored. A call that another conductor repeats
is refused while the first one acts.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from oslo_log import log

from cyborg_lite.agent.arqs.handle_groups import HandleGroups
from cyborg_lite.agent.devices.device_locks import DeviceLocks
from cyborg_lite.agent.inventory.discovery import DRIVER_FAILED, Discovery
from cyborg_lite.agent.state.cache import Cache
from cyborg_lite.agent.state.journal import Journal, NewEvent
from cyborg_lite.drivers.base import (
    ActivatesGroups,
    ChecksHandles,
    ConnectsHandles,
    Driver,
    PreparesHandles,
    TracksHandles,
)
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.errors.drivers import DeviceGone, DriverError
from cyborg_lite.model.bitstreams.bitstreams import LoadOrder
from cyborg_lite.model.devices.devices import AllocatedHandle, ConfirmedHandle
from cyborg_lite.model.hosts.events import HostEventKind, HostHandle
from cyborg_lite.rpc.dispatcher import serves_host
from cyborg_lite.rpc.interface import Agents

LOG = log.getLogger(__name__)


def _refuse_load(order: LoadOrder) -> None:
    raise DriverError(reason=f'Nothing can load image {order.bitstream.image_id}.')


class Preparation:
    """Prepares and releases handles, one at a time per device."""

    def __init__(
        self,
        discovery: Discovery,
        cache: Cache,
        journal: Journal,
        locks: DeviceLocks,
        load: Callable[[LoadOrder], object] = _refuse_load,
    ) -> None:
        self._load = load  # loads a bitstream
        self._discovery = discovery
        self._cache = cache
        self._journal = journal
        self._groups = HandleGroups(discovery, cache)
        self._guard = threading.Lock()
        self._locks = locks  # shared with all components that change devices
        # Released generations by handle uuid. They are not stored across restarts: a
        # prepare call that waits during a restart practically never precedes a release
        # that the earlier process completed.
        self._released_generations: dict[str, int] = {}
        # Claims that a call of ``prepare`` prepares or releases now.
        self._active_claims: set[tuple[str, str, int]] = set()

    @serves_host(Agents.prepare)
    def prepare(
        self, handles: Sequence[AllocatedHandle]
    ) -> tuple[ConfirmedHandle, ...]:
        with self._accept(handles) as unprepared:
            self._prepare_all(handles, unprepared)
            connecting = self.list_connecting(handles)
            return tuple(
                handle.confirm(needs_connect=handle.uuid in connecting)
                for handle in self._select_prepared(handles)
            )

    def _prepare_all(
        self, handles: Sequence[AllocatedHandle], unprepared: Sequence[AllocatedHandle]
    ) -> None:
        """Prepare handles; after a failure release those that were not prepared before.

        An ARQ may be Bound to the others: this call may be a late repetition.
        """
        for count, handle in enumerate(handles):
            try:
                self._prepare_handle(handle)
            except ServiceUnavailable:
                # A repetition continues when the device is free.
                raise
            except BaseException:
                # Keep the following handles that an earlier call has prepared.
                self._release_each(
                    [item for item in handles[:count] if item in unprepared]
                )
                self._remove_unprepared(handles[count:])
                raise
        try:
            self._groups.activate(handles)
        except BaseException:
            self._release_each(unprepared)
            raise
        self._record_prepared(handles, HostEventKind.PREPARED)

    def list_connecting(self, handles: Iterable[AllocatedHandle]) -> tuple[str, ...]:
        """Return the uuids of the handles that their drivers connect later."""
        return tuple(
            handle.uuid
            for handle in handles
            if isinstance(self._find_driver(handle), ConnectsHandles)
        )

    @serves_host(Agents.connect)
    def connect(self, handles: Sequence[AllocatedHandle]) -> None:
        """Connect the handles of an instance that is spawned.

        Handles that are not stored with exactly this claim are ignored.
        """
        for handle in self._select_stored(handles):
            driver = self._find_driver(handle)
            if not isinstance(driver, ConnectsHandles):
                continue
            with self._locks.lock(handle.control_address):
                if self._select_stored([handle]):
                    driver.connect(handle)
                    LOG.info('Connected handle %s', handle.key)

    @serves_host(Agents.list_handles)
    def list_handles(self) -> tuple[HostHandle, ...]:
        entries = self._cache.handles.values()
        return tuple(HostHandle.describe(entry.handle) for entry in entries)

    def _find_driver(self, handle: AllocatedHandle) -> Driver | None:
        return self._discovery.find_driver(handle.control_address)

    def rebuild(self, handle: AllocatedHandle) -> None:
        """Prepare a handle of an instance again after a host reboot.

        A handle that was released or claimed again in the meantime is ignored.

        :raises DriverError: the handle cannot be prepared now; a later call may succeed
        :raises ServiceUnavailable: the bitstream is not cached, and Glance does not
            answer
        """
        if handle.load is not None and handle.uuid in self._cache.handles:
            self._load(handle.load)
        if self._prepare_handle(handle, only_stored=True):
            self._record_prepared([handle], HostEventKind.REBUILT)
            self._groups.reactivate(handle)

    def restore(self, handle: AllocatedHandle) -> None:
        """Prepare a handle again if the host lost it without a reboot.

        :raises DriverError: the handle is lost and cannot be prepared now
        :raises ServiceUnavailable: the driver cannot tell whether the handle is lost
        """
        driver = self._discovery.find_driver(handle.control_address)
        if not (
            isinstance(driver, ChecksHandles) and isinstance(driver, PreparesHandles)
        ):
            return
        with self._locks.lock(handle.control_address):
            # The recovery rebuilds handles that were prepared before a reboot.
            if not self._select_prepared([handle]):
                return
            try:
                is_prepared = driver.is_prepared(handle)
            except DriverError as error:
                driver_name = f'The driver of device {handle.control_address}'
                raise ServiceUnavailable(what=driver_name) from error
            if is_prepared:
                return
            driver.prepare(handle)
        LOG.warning(
            'Handle %s of ARQ %s was lost; it is prepared again',
            handle.key,
            handle.arq_uuid,
        )
        self._record_events(HostEventKind.REBUILT, [handle])

    def adopt(self, handle: AllocatedHandle) -> None:
        """Store a handle of a bound ARQ that the host has prepared.

        The handle is not prepared again: the guest may use what the host has.

        :raises DriverError: the handle is not prepared, or its driver cannot tell
        """
        driver = self._find_driver(handle)
        if driver is None:
            self._check_drivers_available(handle)
        with self._locks.lock(handle.control_address):
            if driver is None or not _shows_prepared(driver, handle):
                reason = f'The host does not show that handle {handle.key} is prepared.'
                raise DriverError(reason=reason)
            with self._guard:
                self._check_current(handle)
                if handle.uuid in self._cache.handles:
                    return
                if isinstance(driver, TracksHandles):
                    driver.restore_handles([handle])
                self._cache.add_handles([handle])
                boot_id = self._discovery.host.boot_id
                self._cache.mark_prepared([handle.uuid], boot_id)
        LOG.warning(
            'Handle %s of ARQ %s was prepared but not stored; it is stored again',
            handle.key,
            handle.arq_uuid,
        )

    @serves_host(Agents.release)
    def release(self, handles: Sequence[AllocatedHandle]) -> None:
        """Release as many of the handles as possible.

        Handles that were never prepared, and handles that were claimed again since, are
        ignored.
        """
        with self._guard:
            for handle in handles:
                if self._is_claimed_again(handle):
                    continue
                generation = self._released_generations.get(handle.uuid, 0)
                self._released_generations[handle.uuid] = max(
                    handle.generation, generation
                )
        failures = self._release_each(handles)
        if failures:
            raise failures[0]

    def _release_each(self, handles: Sequence[AllocatedHandle]) -> list[DriverError]:
        failures = []
        before = self._cache.handles
        for handle in handles:
            try:
                self._release_handle(handle)
            except DriverError as error:
                LOG.error('Cannot release handle %s: %s', handle.uuid, error.text)
                failures.append(error)
            except ServiceUnavailable as error:
                LOG.error('Cannot release handle %s: %s', handle.uuid, error.text)
                failures.append(DriverError(reason=error.text))
            except Exception:
                # A bug in one driver must not prevent the release of other handles.
                LOG.exception('Cannot release handle %s', handle.uuid)
                failures.append(DriverError(reason=DRIVER_FAILED))
        removed = before.keys() - self._cache.handles.keys()
        released = [handle for handle in handles if handle.uuid in removed]
        self._record_events(HostEventKind.RELEASED, released)
        return failures

    @contextmanager
    def _accept(
        self, handles: Sequence[AllocatedHandle]
    ) -> Iterator[Sequence[AllocatedHandle]]:
        """Store the handles in one step, and let no other call prepare their claims.

        :returns: the handles that no earlier call has prepared
        :raises DriverError: the call is stale; nothing is stored
        :raises ServiceUnavailable: another call prepares a handle; nothing is stored
        """
        claims = {handle.claim for handle in handles}
        with self._guard:
            for handle in handles:
                self._check_current(handle)
                if handle.claim in self._active_claims:
                    raise ServiceUnavailable(
                        what=f'The driver of device {handle.control_address}'
                    )
            prepared = self._select_prepared(handles)
            self._cache.add_handles(handles)
            self._active_claims |= claims
        try:
            yield [handle for handle in handles if handle not in prepared]
        finally:
            with self._guard:
                self._active_claims -= claims

    def _remove_unprepared(self, handles: Sequence[AllocatedHandle]) -> None:
        with self._guard:
            self._cache.remove_handles(
                handle.uuid
                for handle in self._select_stored(handles)
                if self._cache.handles[handle.uuid].boot_id is None
            )

    def _select_stored(
        self, handles: Iterable[AllocatedHandle]
    ) -> list[AllocatedHandle]:
        """Return the handles that are stored with exactly this claim."""
        stored = self._cache.handles
        return [
            handle
            for handle in handles
            if handle.uuid in stored
            and stored[handle.uuid].handle.claim == handle.claim
        ]

    def _select_prepared(
        self, handles: Iterable[AllocatedHandle]
    ) -> list[AllocatedHandle]:
        """Return the handles whose claim is marked as prepared in this host boot."""
        boot_id, stored = self._discovery.host.boot_id, self._cache.handles
        return [
            handle
            for handle in self._select_stored(handles)
            if stored[handle.uuid].boot_id == boot_id
        ]

    def _record_prepared(
        self, handles: Sequence[AllocatedHandle], kind: HostEventKind
    ) -> None:
        boot_id = self._discovery.host.boot_id
        with self._guard:
            # A later call may have stored the handle with a newer generation.
            prepared = [
                handle
                for handle in self._select_stored(handles)
                if self._cache.handles[handle.uuid].boot_id != boot_id
            ]
            self._cache.mark_prepared((handle.uuid for handle in prepared), boot_id)
        self._record_events(kind, prepared)

    def _record_events(
        self, kind: HostEventKind, handles: Iterable[AllocatedHandle]
    ) -> None:
        self._journal.append(
            NewEvent(kind, handle.control_address, handle.arq_uuid)
            for handle in handles
        )

    def _prepare_handle(
        self, handle: AllocatedHandle, *, only_stored: bool = False
    ) -> bool:
        """Prepare a handle. Return False if ``only_stored`` and it is not stored."""
        driver = self._discovery.find_driver(handle.control_address)
        if driver is None:
            self._check_drivers_available(handle)
            raise DeviceGone(address=handle.control_address)
        with self._locks.lock(handle.control_address):
            if only_stored:
                if not self._select_stored([handle]):
                    return False
            else:
                with self._guard:
                    self._check_current(handle)
            if isinstance(driver, PreparesHandles):
                driver.prepare(handle)
                LOG.info('Prepared handle %s of ARQ %s', handle.key, handle.arq_uuid)
        return True

    def _release_handle(self, handle: AllocatedHandle) -> None:
        driver = self._discovery.find_driver(handle.control_address)
        if driver is None:
            self._check_drivers_available(handle)
            # The objects on a device disappear with the device.
            LOG.warning(
                'Handle %s counts as released: no driver reports device %s',
                handle.key,
                handle.control_address,
            )
        with self._locks.lock(handle.control_address):
            if self._is_claimed_again(handle):
                LOG.warning(
                    'Ignoring stale release of handle %s: it has been claimed again',
                    handle.key,
                )
                return
            self._groups.deactivate(handle)
            if isinstance(driver, PreparesHandles):
                # The database forgets the instance of an ARQ that is unbound.
                stored = self._cache.handles.get(handle.uuid)
                instance = handle.instance_uuid
                if stored is not None and not instance:
                    instance = stored.handle.instance_uuid
                driver.release(replace(handle, instance_uuid=instance))
                LOG.info('Released handle %s of ARQ %s', handle.key, handle.arq_uuid)
            with self._guard:
                # A later claim may have been stored meanwhile.
                if not self._is_claimed_again(handle):
                    self._cache.remove_handles([handle.uuid])

    def _check_current(self, handle: AllocatedHandle) -> None:
        """Check that the claim was not released. The caller holds the guard.

        :raises DriverError: the call is stale, or the unit is prepared for another ARQ
        """
        if holder := self.find_holder(handle):
            reason = (
                f'Unit {handle.key} is prepared for ARQ {holder.arq_uuid} of instance '
                f'{holder.instance_uuid or "unknown"}, which its host has not released.'
            )
            raise DriverError(reason=reason)
        released = self._released_generations.get(handle.uuid, 0)
        if 0 < handle.generation <= released or self._is_claimed_again(handle):
            reason = (
                f'Handle {handle.key} was released before its preparation began, or '
                'is claimed by another ARQ.'
            )
            raise DriverError(reason=reason)

    def _is_claimed_again(self, handle: AllocatedHandle) -> bool:
        """Check whether another claim of the unit is stored that must stay.

        A restored database may use a generation again, for another ARQ. The order of
        the two claims is then not known, and the stored one stays.
        """
        if self.find_holder(handle):
            return True
        stored = self._cache.handles.get(handle.uuid)
        if stored is None or stored.handle.claim == handle.claim:
            return False
        return handle.generation <= stored.handle.generation

    def find_holder(self, handle: AllocatedHandle) -> AllocatedHandle | None:
        """Return the handle of another ARQ that is prepared on the same unit.

        A conductor claims a unit after its host has released it. The database of a
        conductor that has not seen that was restored; it may have given the handle
        another uuid.
        """
        for entry in self._cache.handles.values():
            holder = entry.handle
            if (
                holder.arq_uuid != handle.arq_uuid
                and entry.boot_id is not None
                and (holder.uuid == handle.uuid or holder.unit == handle.unit)
            ):
                return holder
        return None

    def _check_drivers_available(self, handle: AllocatedHandle) -> None:
        """Check that all drivers completed the last scan.

        :raises DriverError: a driver that did not may be the driver of the device
        """
        unavailable = self._discovery.unavailable_drivers
        if unavailable:
            names = ' and '.join(unavailable)
            reason = (
                f'No driver reports device {handle.control_address}, but {names} does '
                'not answer.'
            )
            raise DriverError(reason=reason)


def _shows_prepared(driver: Driver, handle: AllocatedHandle) -> bool:
    """Return True if the host shows the result of ``prepare``, or it has none."""
    if isinstance(driver, ActivatesGroups) and driver.find_group(handle):
        return False  # the members of an active group are lost with the state
    if isinstance(driver, ChecksHandles):
        return driver.is_prepared(handle)
    return not isinstance(driver, PreparesHandles)
