# SPDX-License-Identifier: Apache-2.0
"""Devices: changes of their status."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from oslo_log import log

from cyborg_lite.clients.placement import Placement
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import devices
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Agents, Conductor

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeviceService:
    """Changes the status of devices in the database and in Placement.

    A change of status returns after Placement has the new inventory. A device in
    maintenance therefore gets no new instance once the call has returned.
    """

    database: Database
    # Runs the Placement sync job of a host or waits for it.
    sync_placement: Callable[[str], object]

    @serves(Conductor.set_quarantine)
    def set_quarantine(
        self, uuid: str, reason: str, name: str = '', generation: int | None = None
    ) -> None:
        """Begin or end the quarantine of a device, in the database and in Placement.

        No bind claims the device from now on. If Placement does not answer, a job
        reserves the units later.
        """
        host = self.database.write(
            devices.set_quarantine, uuid, reason, name, generation
        )
        LOG.info('Quarantine of device %s set to %s', uuid, reason or 'none')
        try:
            self.sync_placement(host)
        except CyborgError as error:
            LOG.warning('Placement does not have the quarantine yet: %s', error.text)

    @serves(Conductor.set_device_status)
    def set_status(
        self,
        uuid: str,
        status: DeviceStatus,
        reason: str = '',
        generation: int | None = None,
    ) -> None:
        """Change the status and reserve or free the device in Placement.

        The same transaction writes a Placement sync job. If this process exits before
        it has called Placement, another conductor runs that job.
        """
        change = partial(
            devices.set_device_status, uuid=uuid, status=status, reason=reason
        )
        # The first transaction may change the generation, so only it compares it.
        previous = self.database.write(change, generation=generation)
        if previous.status is status:
            # Another call may have set the status and undo it if Placement fails.
            self.sync_placement(previous.hostname)
            previous = self.database.write(change)
        if previous.status is status:
            return
        try:
            self.sync_placement(previous.hostname)
        except CyborgError:
            setting = (status, reason)
            self.database.write(devices.undo_device_status, uuid, setting, previous)
            raise
        LOG.info(
            'Status of device %s on host %s changed to %s',
            uuid,
            previous.hostname,
            status,
        )


# --- peers of a change of the devices of a host ---


@dataclass(frozen=True, slots=True)
class HostPeers:
    """The peers that a change of the devices of a host needs."""

    agents: Agents
    placement: Placement
    sync_placement: Callable[[str], object]  # updates the providers of a host

    def describe_allocations(self, providers: Iterable[str]) -> str:
        """Return which instances are scheduled to a provider; empty: none is."""
        for provider in providers:
            consumers = sorted(self.placement.list_consumers(provider))
            if consumers:
                return f'Placement has allocations of it: {", ".join(consumers[:10])}.'
        return ''

    def try_sync(self, hostname: str) -> None:
        """Update the providers after a change; if it fails, a job does it later."""
        try:
            self.sync_placement(hostname)
        except CyborgError as error:
            LOG.warning(
                'Placement sync of host %s after a change of its devices postponed to '
                'a job: %s',
                hostname,
                error.text,
            )
