# SPDX-License-Identifier: Apache-2.0
"""Attach handles that no ARQ owns, although an instance may still use them.

A database that was restored from a backup lacks the ARQs of later binds. Before a host
releases such a handle, Placement and Nova must both say that nobody uses it. What
cannot be read counts as use.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from oslo_log import log

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Placement
from cyborg_lite.db.arqs import occupied_handles
from cyborg_lite.db.arqs.attach_handles import list_handles_of_arqs
from cyborg_lite.db.arqs.occupied_handles import HandleRow
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.incarnations import find_quarantine
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.hosts.events import HandleComparison, HostHandle
from cyborg_lite.model.inventory.host_report import Deployable
from cyborg_lite.model.limits import check_message
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor

LOG = log.getLogger(__name__)

_UNKNOWN: Final = 'unknown'


@dataclass(frozen=True, slots=True)
class UnownedHandles:
    """Decides which prepared handles a host releases."""

    database: Database
    placement: Placement
    nova: Nova
    wake: Callable[[], None]  # called when jobs were written

    @serves(Conductor.reconcile_handles)
    def list_releasable(
        self, host: str, handles: Sequence[HostHandle]
    ) -> HandleComparison:
        """Return the prepared handles that nobody uses, for the agent to release.

        All other handles that no ARQ owns are kept. Each handle that no ARQ owns is
        occupied until its host does not mention it any more. Handles that bound ARQs
        own, and that the host does not mention, are returned as well. While the
        database is in quarantine, the host changes nothing.
        """
        check_message(host, handles, 'HostHandles.handles')
        uuids = [handle.uuid for handle in handles]
        rows = self.database.read(occupied_handles.list_compared, host, uuids)
        owners = {row.uuid: row.arq_uuid for row in rows}
        unmentioned = self._list_unmentioned(host, rows, uuids)
        unowned = [item for item in handles if owners.get(item.uuid) != item.arq_uuid]
        stored = self._find_rows(host, unowned, rows)
        self._vacate(host, rows, stored)
        if not unowned and not unmentioned:
            return HandleComparison()
        unowned = self._occupy(host, unowned, stored)
        if self.database.read(find_quarantine) is not None:
            for handle in unowned:
                _log_kept(host, handle, 'the database has lost changes')
            return HandleComparison()
        if not unowned:
            return HandleComparison(unmentioned=unmentioned)
        reasons = self._find_uses(unowned, stored)
        for handle in unowned:
            if handle.uuid in reasons:
                _log_kept(host, handle, reasons[handle.uuid])
        released = [item.uuid for item in unowned if item.uuid not in reasons]
        if released:
            LOG.warning(
                'Host %s releases %d handles that no ARQ owns and no instance uses: %s',
                host,
                len(released),
                ', '.join(released),
            )
        return HandleComparison(tuple(released), unmentioned)

    def _list_unmentioned(
        self, host: str, rows: Sequence[HandleRow], uuids: Sequence[str]
    ) -> tuple[AllocatedHandle, ...]:
        """Return the handles of bound ARQs that the host does not mention."""
        arqs = [row.arq_uuid for row in rows if row.arq_uuid and row.uuid not in uuids]
        if not arqs:
            return ()
        LOG.warning(
            'Host %s does not know the handles of bound ARQs %s, perhaps after a loss '
            'of its state_path',
            host,
            ', '.join(arqs),
        )
        return self.database.read(list_handles_of_arqs, arqs)

    def _find_rows(
        self, host: str, unowned: Sequence[HostHandle], rows: Sequence[HandleRow]
    ) -> Mapping[str, HandleRow]:
        """Return the stored handles, by uuid as the host knows them."""
        by_uuid = {row.uuid: row for row in rows}
        keys = {handle.key for handle in unowned if handle.uuid not in by_uuid}
        namesakes: Sequence[HandleRow] = ()
        if keys:
            namesakes = self.database.read(occupied_handles.list_by_keys, host, keys)
        by_unit = {(row.deployable_name, row.key): row for row in namesakes}
        by_host = {
            handle.uuid: by_uuid.get(handle.uuid)
            or by_unit.get((handle.deployable_name, handle.key))
            for handle in unowned
        }
        return {uuid: row for uuid, row in by_host.items() if row is not None}

    def _vacate(
        self, host: str, rows: Sequence[HandleRow], stored: Mapping[str, HandleRow]
    ) -> None:
        """End the occupation of handles that are no longer prepared."""
        prepared = {row.uuid for row in stored.values()}
        vacant = [row for row in rows if row.is_occupied and row.uuid not in prepared]
        if not vacant:
            return
        uuids = [row.uuid for row in vacant]
        self.database.write(occupied_handles.vacate, host, uuids)
        self.wake()
        LOG.info(
            'Host %s has released %d handles that no ARQ owns: %s',
            host,
            len(vacant),
            ', '.join(row.key for row in vacant),
        )

    def _occupy(
        self, host: str, unowned: Sequence[HostHandle], stored: Mapping[str, HandleRow]
    ) -> list[HostHandle]:
        """Withhold the handles; return those that no ARQ has claimed meanwhile."""
        new = {
            row.uuid: handle
            for handle in unowned
            if (row := stored.get(handle.uuid)) is not None
            and not (row.is_occupied or row.is_claimed)
        }
        if not new:
            return list(unowned)
        occupied = self.database.write(occupied_handles.occupy, host, new)
        self.wake()
        claimed = {handle.uuid for uuid, handle in new.items() if uuid not in occupied}
        return [handle for handle in unowned if handle.uuid not in claimed]

    def _find_uses(
        self, unowned: Sequence[HostHandle], stored: Mapping[str, HandleRow]
    ) -> Mapping[str, str]:
        """Return why an instance may use handles, by uuid as the host knows them."""
        providers = {
            handle.uuid: _find_provider(handle, stored.get(handle.uuid))
            for handle in unowned
        }
        consumers = {
            provider: self._list_consumers(provider)
            for provider in sorted(set(providers.values()))
        }
        missing = self._list_missing({handle.instance_uuid for handle in unowned})
        reasons: dict[str, str] = {}
        for handle in unowned:
            row = stored.get(handle.uuid)
            allocated = consumers[providers[handle.uuid]]
            if row is not None and row.is_claimed:
                reasons[handle.uuid] = 'another ARQ owns the same unit'
            elif allocated is None:
                reasons[handle.uuid] = 'its allocations cannot be read'
            elif handle.instance_uuid in allocated:
                reasons[handle.uuid] = 'the instance has an allocation on its provider'
            elif allocated and not handle.instance_uuid:
                reasons[handle.uuid] = 'its provider has allocations'
            elif missing is None:
                reasons[handle.uuid] = 'its instance cannot be read'
            elif handle.instance_uuid not in missing:
                reasons[handle.uuid] = 'the instance exists in Nova'
        return reasons

    def _list_consumers(self, provider: str) -> frozenset[str] | None:
        """Return the consumers of a provider; None: they cannot be read."""
        try:
            return self.placement.list_consumers(provider)
        except CyborgError as error:
            LOG.warning('Allocations on %s cannot be read: %s', provider, error.text)
            return None

    def _list_missing(self, instances: set[str]) -> frozenset[str] | None:
        """Return the instances that do not exist; None: they cannot be read.

        Without a Nova, Placement alone decides.
        """
        try:
            missing = self.nova.find_missing_instances(instances - {''})
        except CyborgError as error:
            LOG.warning('Instances of handles cannot be read: %s', error.text)
            return None
        return frozenset(instances) if missing is None else missing | {''}


def _find_provider(handle: HostHandle, row: HandleRow | None) -> str:
    if row is not None and row.rp_uuid is not None:
        return row.rp_uuid
    return Deployable(handle.deployable_name).provider_uuid


def _log_kept(host: str, handle: HostHandle, reason: str) -> None:
    LOG.warning(
        'Host %s keeps handle %s (%s) of ARQ %s, instance %s, although no ARQ owns it: '
        '%s',
        host,
        handle.key,
        handle.uuid,
        handle.arq_uuid,
        handle.instance_uuid or _UNKNOWN,
        reason,
    )
