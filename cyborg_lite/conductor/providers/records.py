# SPDX-License-Identifier: Apache-2.0
"""The rows of the database that a Placement sync reads and writes."""

from collections.abc import Collection, Iterable, Mapping

from oslo_log import log

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.db.providers import providers
from cyborg_lite.model.providers.providers import DesiredProvider, ProviderRow

LOG = log.getLogger(__name__)


class ProviderRecords:
    """Reads and writes provider rows. Unchanged rows cause no statement."""

    def __init__(self, database: Database, *, writable: bool = True) -> None:
        """Prepare access to the rows.

        :param writable: False: write nothing, for a rehearsal
        """
        self._database = database
        self._writable = writable

    def list_rows(self, hostname: str) -> tuple[ProviderRow, ...]:
        """Return the rows of the host from which its providers are computed."""
        return self._database.read(providers.list_providers_of_host, hostname)

    def list_device_functions(self, hostname: str) -> Mapping[str, frozenset[str]]:
        """Return the PCI addresses of the functions of each device, by device uuid."""
        return self._database.read(device_owners.list_device_functions, hostname)

    def is_known_host(self, hostname: str) -> bool:
        """Return whether the host has a device or an agent."""
        return self._database.read(device_owners.is_known_host, hostname)

    def list_published_traits(self, rp_uuid: str) -> frozenset[str]:
        """Return the traits that this service may have set on a provider."""
        return self._database.read(providers.list_published_traits, [rp_uuid])

    def record_new_traits(
        self, rows: Iterable[ProviderRow], desired: Iterable[DesiredProvider]
    ) -> None:
        """Record traits and classes of this service before they are published.

        If this process exits in between, a later sync still knows which traits it
        may remove.
        """
        recorded = {row.rp_uuid: frozenset(row.published_traits or ()) for row in rows}
        published = {provider.uuid: provider.published_names for provider in desired}
        new = {
            uuid: recorded[uuid] | names
            for uuid, names in published.items()
            if not names <= recorded[uuid]
        }
        if new and self._writable:
            self._database.write(providers.record_provider_traits, new)

    def remove_old_traits(
        self, updated: Iterable[DesiredProvider], deleted: Collection[str]
    ) -> None:
        """Forget traits that Placement no longer has.

        :param updated: providers whose former traits have been removed from Placement
        :param deleted: uuids of providers that have been deleted from Placement
        """
        current = {
            provider.uuid: provider.published_names
            for provider in updated
            if provider.former_traits
        }
        if current and self._writable:
            self._database.write(providers.record_provider_traits, current)
        if deleted and self._writable:
            self._database.write(providers.delete_provider_traits, deleted)

    def record_conflicts(
        self, rows: Iterable[ProviderRow], reasons: Mapping[str, str]
    ) -> None:
        """Store which devices another service manages, and log each change.

        :param reasons: a sentence that names the other service, by device uuid
        """
        changed = {
            row.device_uuid: (row, reasons.get(row.device_uuid, ''))
            for row in rows
            if row.conflict != reasons.get(row.device_uuid, '')
        }
        if not changed or not self._writable:
            return
        new = {uuid: reason for uuid, (_, reason) in changed.items()}
        self._database.write(device_owners.store_conflicts, new)
        for uuid, (row, reason) in changed.items():
            if reason:
                LOG.warning(
                    'Device %s is withdrawn from Placement (provider %s): %s',
                    uuid,
                    row.name,
                    reason,
                )
            else:
                LOG.info(
                    'Device %s is published in Placement again (provider %s): '
                    'no other service manages it',
                    uuid,
                    row.name,
                )
