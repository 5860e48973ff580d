# SPDX-License-Identifier: Apache-2.0
"""What a sync with Placement reads and keeps in our own database."""

from collections.abc import Collection, Iterable, Mapping

from oslo_log import log

from cyborg_lite.db import conflicts, provider_traits, providers
from cyborg_lite.db.engine import Database
from cyborg_lite.model.providers import OWNER, ProviderRow, WantedProvider

LOG = log.getLogger(__name__)


class ProviderRecords:
    """Statements only where something differs from what is on record."""

    def __init__(self, database: Database, *, writable: bool = True) -> None:
        self._database = database
        self._writable = writable  # False: who only wants to know leaves no trace

    def rows(self, hostname: str) -> tuple[ProviderRow, ...]:
        return self._database.read(providers.providers_of_host, hostname)

    def addresses(self, hostname: str) -> Mapping[str, frozenset[str]]:
        """By uuid of the device: the PCI functions that belong to it."""
        return self._database.read(conflicts.addresses, hostname)

    def tell(
        self, rows: Iterable[ProviderRow], wanted: Iterable[WantedProvider]
    ) -> None:
        """Before Placement hears of traits: that they are ours."""
        known = {row.rp_uuid: frozenset(row.told or ()) for row in rows}
        traits = {provider.uuid: provider.traits - {OWNER} for provider in wanted}
        new = {
            uuid: known[uuid] | those
            for uuid, those in traits.items()
            if not those <= known[uuid]
        }
        if new and self._writable:
            self._database.write(provider_traits.record, new)

    def settle(self, done: Iterable[WantedProvider], gone: Collection[str]) -> None:
        """Afterwards: ``done`` have lost what they were to lose, ``gone`` are none."""
        left = {one.uuid: one.traits - {OWNER} for one in done if one.formerly}
        if left and self._writable:
            self._database.write(provider_traits.record, left)
        if gone and self._writable:
            self._database.write(provider_traits.forget, gone)

    def mark(self, rows: Iterable[ProviderRow], reasons: Mapping[str, str]) -> None:
        """By uuid of the device: who else manages it. Said once, and when it ends."""
        changed = {
            row.device_uuid: (row, reasons.get(row.device_uuid, ''))
            for row in rows
            if row.conflict != reasons.get(row.device_uuid, '')
        }
        if not changed or not self._writable:
            return
        new = {uuid: reason for uuid, (_, reason) in changed.items()}
        self._database.write(conflicts.mark, new)
        for row, reason in changed.values():
            if reason:
                LOG.warning('%s is not offered. %s', row.name, reason)
            else:
                LOG.info('%s is offered again: no other service has it.', row.name)
