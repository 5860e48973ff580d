# SPDX-License-Identifier: Apache-2.0
"""Makes attach handles ready for a guest and takes them back, through the drivers.

What is about to be prepared is written down first, and what became of it before the
answer leaves: whatever dies in between, a later process knows what is ours.

A host that stood still for a while finds orders that nobody stands by any more, and
newer ones beside them, in no order. The turn of a handle tells which is which.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager

from oslo_log import log

from cyborg_lite.agent.cache import Cache
from cyborg_lite.agent.discovery import Discovery
from cyborg_lite.agent.journal import Journal, News
from cyborg_lite.drivers.base import Checking, Preparing
from cyborg_lite.exceptions import DeviceGone, DriverError
from cyborg_lite.model.bitstreams import LoadOrder
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.host_events import HostEventKind

LOG = log.getLogger(__name__)


class Preparation:
    """One thing at a time happens to a device; devices do not wait for one another."""

    def __init__(
        self,
        discovery: Discovery,
        cache: Cache,
        journal: Journal,
        load: Callable[[LoadOrder], object] | None = None,
    ) -> None:
        """:param load: what loads bitstreams; None: there is nothing to load from"""
        self._load = load
        self._discovery = discovery
        self._cache = cache
        self._journal = journal
        self._guard = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        # By handle: the turn that has ended. Not kept over a restart: what an earlier
        # process had not begun by then was hardly ordered before what it had ended.
        self._ended: dict[str, int] = {}

    def prepare(self, handles: Sequence[HeldHandle]) -> None:
        """All of them or none.

        :raises DriverError: one cannot be made ready; the others are given back
        """
        for handle in handles:
            self._check_wanted(handle)
        self._cache.intend(handles)
        for done, handle in enumerate(handles):
            try:
                self._prepare_one(handle)
            except BaseException:
                # Those that were not begun may be ready since an earlier call.
                self._release_each(handles[:done])
                self._forget_unready(handles[done:])
                raise
        self._made_ready(handles, HostEventKind.PREPARED)

    def rebuild(self, handle: HeldHandle) -> None:
        """As ``prepare``, for one that a guest has already and that a boot has undone.

        One that was released meanwhile stays so.

        :raises DriverError: it cannot be now; nothing is given up
        :raises ServiceUnavailable: what was loaded is not here, nor is Glance
        """
        if handle.load is not None and handle.uuid in self._cache.kept:
            self._load_again(handle.load)
        if self._prepare_one(handle, only_kept=True):
            self._made_ready([handle], HostEventKind.REBUILT)

    def restore(self, handle: HeldHandle) -> None:
        """Make one that was ready again, if the host has lost it since.

        :raises DriverError: it is lost, and cannot be made now
        """
        driver = self._discovery.driver_of(handle.address)
        if not (isinstance(driver, Checking) and isinstance(driver, Preparing)):
            return
        with self._exclusive(handle.address):
            kept = self._cache.kept.get(handle.uuid)
            # What another boot has undone is the business of the recovery.
            if kept is None or kept.boot_id != self._discovery.host.boot_id:
                return
            if driver.is_prepared(handle):
                return
            driver.prepare(handle)
        LOG.warning('Made %s of ARQ %s again.', handle.key, handle.arq_uuid)
        self._note(HostEventKind.REBUILT, [handle])

    def _load_again(self, order: LoadOrder) -> None:
        if self._load is None:
            image = order.bitstream.image_id
            reason = f'Image {image} cannot be loaded: there is no [glance] section.'
            raise DriverError(reason=reason)
        self._load(order)

    def release(self, handles: Sequence[HeldHandle]) -> None:
        """As many of them as can be; what was never prepared is done.

        So is what was given to somebody else since: it is not touched.

        :raises DriverError: one or more cannot be now
        """
        with self._guard:
            for handle in handles:
                ended = max(handle.turn, self._ended.get(handle.uuid, 0))
                self._ended[handle.uuid] = ended
        failures = self._release_each(handles)
        if failures:
            raise failures[0]

    def _release_each(self, handles: Sequence[HeldHandle]) -> list[DriverError]:
        failures = []
        known = self._cache.kept
        for handle in handles:
            try:
                self._release_one(handle)
            except DriverError as error:
                LOG.error('Handle %s stays prepared: %s', handle.uuid, error.text)
                failures.append(error)
            except Exception:
                # A mistake in one driver must not keep the other handles from release.
                LOG.exception('Handle %s stays prepared.', handle.uuid)
                failures.append(DriverError(reason='The driver failed; see its log.'))
        left = self._cache.kept
        released = [each for each in handles if each.uuid in known.keys() - left.keys()]
        self._note(HostEventKind.RELEASED, released)
        return failures

    def _forget_unready(self, handles: Sequence[HeldHandle]) -> None:
        kept = self._cache.kept
        self._cache.forget(
            one.uuid
            for one in handles
            if one.uuid in kept and kept[one.uuid].boot_id is None
        )

    def _made_ready(self, handles: Sequence[HeldHandle], kind: HostEventKind) -> None:
        boot_id, kept = self._discovery.host.boot_id, self._cache.kept
        new = [
            one
            for one in handles
            if one.uuid not in kept or kept[one.uuid].boot_id != boot_id
        ]
        self._cache.ready((one.uuid for one in new), boot_id)
        self._note(kind, new)

    def _note(self, kind: HostEventKind, handles: Iterable[HeldHandle]) -> None:
        self._journal.note(News(kind, one.address, one.arq_uuid) for one in handles)

    def _prepare_one(self, handle: HeldHandle, *, only_kept: bool = False) -> bool:
        """False: it is not kept, and only what is kept was to be prepared."""
        driver = self._discovery.driver_of(handle.address)
        if driver is None:
            self._check_all_answered(handle)
            raise DeviceGone(address=handle.address)
        with self._exclusive(handle.address):
            if only_kept:
                if handle.uuid not in self._cache.kept:
                    return False
            else:
                self._check_wanted(handle)
            if isinstance(driver, Preparing):
                driver.prepare(handle)
                LOG.info('Prepared %s of ARQ %s.', handle.key, handle.arq_uuid)
        return True

    def _release_one(self, handle: HeldHandle) -> None:
        driver = self._discovery.driver_of(handle.address)
        if driver is None:
            self._check_all_answered(handle)
            # What was made on a device goes with it.
            LOG.warning('Released %s: no driver knows the device.', handle.key)
        with self._exclusive(handle.address):
            if self._is_anothers(handle):
                LOG.warning('%s was given away since; not released.', handle.key)
                return
            if isinstance(driver, Preparing):
                driver.release(handle)
                LOG.info('Released %s of ARQ %s.', handle.key, handle.arq_uuid)
            self._cache.forget([handle.uuid])

    def _check_wanted(self, handle: HeldHandle) -> None:
        """:raises DriverError: the order is out of date"""
        with self._guard:
            ended = self._ended.get(handle.uuid, 0)
        if 0 < handle.turn <= ended or self._is_anothers(handle):
            reason = f'{handle.key} was released before it was to be prepared.'
            raise DriverError(reason=reason)

    def _is_anothers(self, handle: HeldHandle) -> bool:
        """Whether it was prepared for a request that was given it later."""
        kept = self._cache.kept.get(handle.uuid)
        return kept is not None and 0 < handle.turn < kept.handle.turn

    def _check_all_answered(self, handle: HeldHandle) -> None:
        """A driver that is silent now may be the one that knows the device."""
        silent = self._discovery.silent
        if silent:
            names = ' and '.join(silent)
            reason = (
                f'Nobody knows device {handle.address}, but {names} does not answer'
            )
            raise DriverError(reason=f'{reason}.')

    def _exclusive(self, address: str) -> AbstractContextManager[object]:
        with self._guard:
            return self._locks.setdefault(address, threading.Lock())
