# SPDX-License-Identifier: Apache-2.0
"""Activates groups of handles that one instance gets together.

The members of an active group are stored with each of them. A release therefore
deactivates exactly the members that were activated, also after a restart.
"""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from oslo_log import log

from cyborg_lite.agent.inventory.discovery import Discovery
from cyborg_lite.agent.state.cache import Cache, PreparedHandle
from cyborg_lite.drivers.base import ActivatesGroups
from cyborg_lite.model.devices.devices import AllocatedHandle

LOG = log.getLogger(__name__)


class HandleGroups:
    """Calls the drivers with the exact members, one group at a time."""

    def __init__(self, discovery: Discovery, cache: Cache) -> None:
        self._discovery = discovery
        self._cache = cache
        self._guard = threading.Lock()

    def activate(self, handles: Iterable[AllocatedHandle]) -> None:
        """Activate the groups of the handles of one bind, which are all prepared.

        :raises DriverError: the handles are not a group that can be activated
        """
        members = [(self._name_group(handle), handle) for handle in handles]
        members = sorted(
            (pair for pair in members if pair[0]),
            key=lambda pair: (pair[0], pair[1].key),
        )
        if not members:
            return
        with self._guard:
            for name, pairs in groupby(members, key=lambda pair: pair[0]):
                self._activate([handle for _, handle in pairs], name[1])

    def reactivate(self, handle: AllocatedHandle) -> None:
        """Activate a stored group after a host reboot, when all members are rebuilt.

        :raises DriverError: the group cannot be activated now
        """
        if self._has_no_group(handle):
            return
        boot_id = self._discovery.host.boot_id
        with self._guard:
            members = self._list_members(handle)
            if members and all(entry.boot_id == boot_id for entry in members):
                stored = [entry.handle for entry in members]
                self._activate(stored, 'stored')

    def deactivate(self, handle: AllocatedHandle) -> None:
        """Deactivate the group of a handle before the first member is released.

        :raises DriverError: the group cannot be deactivated now
        """
        if self._has_no_group(handle):
            return
        with self._guard:
            members = [entry.handle for entry in self._list_members(handle)]
            driver = self._discovery.find_driver(handle.control_address)
            if not members:
                return
            if isinstance(driver, ActivatesGroups):
                driver.deactivate(members)
                LOG.info('Deactivated a group of %d handles', len(members))
            self._store_group(members, ())

    def _activate(self, members: Sequence[AllocatedHandle], name: str) -> None:
        driver = self._discovery.find_driver(members[0].control_address)
        if not isinstance(driver, ActivatesGroups):
            return
        # Stored before the call: after a crash the release deactivates the members.
        self._store_group(members, tuple(handle.uuid for handle in members))
        driver.activate(members)
        LOG.info('Activated group %s of %d handles', name, len(members))

    def _name_group(self, handle: AllocatedHandle) -> tuple[str, str] | None:
        """Return driver and group of a handle, or None if it has no group."""
        driver = self._discovery.find_driver(handle.control_address)
        if not isinstance(driver, ActivatesGroups):
            return None
        name = driver.find_group(handle)
        return (driver.NAME, name) if name else None

    def _has_no_group(self, handle: AllocatedHandle) -> bool:
        """Check whether the handle belongs to no group.

        It takes no lock: a driver call that never returns may hold the lock.
        """
        driver = self._discovery.find_driver(handle.control_address)
        is_grouped = isinstance(driver, ActivatesGroups)
        return not is_grouped and not self._list_members(handle)

    def _list_members(self, handle: AllocatedHandle) -> list[PreparedHandle]:
        stored = self._cache.handles
        entry = stored.get(handle.uuid)
        group = () if entry is None else entry.group
        return [stored[uuid] for uuid in group if uuid in stored]

    def _store_group(
        self, members: Sequence[AllocatedHandle], group: tuple[str, ...]
    ) -> None:
        uuids = {handle.uuid for handle in members}
        self._cache.convert_handles(
            lambda entry: (
                replace(entry, group=group) if entry.handle.uuid in uuids else entry
            )
        )
