# SPDX-License-Identifier: Apache-2.0
"""Hosts: maintenance of all their devices, and their removal."""

from dataclasses import dataclass
from typing import Final

from oslo_log import log

from cyborg_lite.conductor.jobs.operations import build_operation
from cyborg_lite.conductor.providers.host_jobs import HostSyncJobs
from cyborg_lite.conductor.providers.sync import SyncMode
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import hosts
from cyborg_lite.db.providers import providers
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.hosts.services import HostSummary
from cyborg_lite.model.operations import OperationKind, SubjectType
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor

LOG = log.getLogger(__name__)

DRAIN_REASON: Final = 'The host is drained.'


@dataclass(frozen=True, slots=True)
class HostService:
    """Changes hosts in the database and in Placement.

    If Placement does not answer, a conductor completes the change later.
    """

    database: Database
    sync_jobs: HostSyncJobs

    @serves(Conductor.set_host_status)
    def set_status(
        self,
        host: str,
        status: DeviceStatus,
        reason: str,
        expected: HostSummary | None = None,
    ) -> int:
        """Set the status of all devices of a host; return the number of changes.

        The call returns after Placement has the status.

        :param expected: the host as the caller has read it; None: anything
        :raises HostNotFound: the host has neither an agent nor devices
        :raises HostChanged: the devices of the host, or their status, have changed
        :raises ServiceUnavailable: Placement does not answer
        """
        set_status, write = hosts.set_status, self.database.write
        changed = write(set_status, host, status, reason, expected)
        if not changed:
            # An earlier call may have failed, or may undo its change of a device.
            self.sync_jobs.sync(host)
            changed = write(set_status, host, status, reason)
        if changed:
            self.sync_jobs.sync(host)
            LOG.info('Status of %d devices of host %s: %s', changed, host, status)
        if status is DeviceStatus.ENABLED:
            uuids = self.database.read(hosts.list_changing_devices, host)
            if uuids:
                LOG.info('Jobs change devices of host %s: %s', host, ', '.join(uuids))
        return changed

    @serves(Conductor.forget_host)
    def drain_and_forget(self, context: RequestContext, host: str, drain: bool) -> str:
        """Delete a host; return its operation.

        The operation ends when Placement offers nothing of the host. The providers are
        deleted later, see ``ProviderRemovalHandler``.

        :param drain: first put all devices into maintenance
        """
        if drain:
            self.set_status(host, DeviceStatus.MAINTAINING, DRAIN_REASON)
        kind, subject = OperationKind.FORGET, SubjectType.HOST
        operation = build_operation(context, kind, subject, host)
        uuids = self.database.write(hosts.forget_host, host, operation)
        LOG.info('Deleted host %s with %d providers', host, len(uuids))
        try:
            result = self.sync_jobs.sync_in_mode(host, SyncMode(deep=True))
            if not result.problems:
                self.database.write(providers.delete_unused_traits, uuids)
        except CyborgError as error:
            LOG.warning('Emptying the providers of host %s later: %s', host, error.text)
        return operation.uuid
