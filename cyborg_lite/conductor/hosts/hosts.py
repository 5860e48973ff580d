# SPDX-License-Identifier: Apache-2.0
"""Hosts: maintenance of all their devices, and their removal."""

from dataclasses import dataclass

from oslo_log import log

from cyborg_lite.conductor.jobs.operations import build_operation
from cyborg_lite.conductor.providers.host_jobs import HostSyncJobs
from cyborg_lite.conductor.providers.sync import SyncMode, SyncResult
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import hosts, services
from cyborg_lite.db.providers import providers
from cyborg_lite.errors.hosts import ServiceAlive, ServiceNotFound
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.hosts.hosts import RemovedHost
from cyborg_lite.model.hosts.services import AGENT, Service, ServiceState
from cyborg_lite.model.operations import NewOperation, OperationKind, SubjectType
from cyborg_lite.model.queries import Query
from cyborg_lite.rpc.context import RequestContext
from cyborg_lite.rpc.dispatcher import serves
from cyborg_lite.rpc.interface import Conductor

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HostService:
    """Changes hosts in the database and in Placement.

    If Placement does not answer, a conductor completes the change later.
    """

    database: Database
    sync_jobs: HostSyncJobs

    def set_status(self, host: str, status: DeviceStatus, reason: str) -> int:
        """Set the status of all devices of a host; return the number of changes.

        The call returns after Placement has the status.

        :raises HostNotFound: the host has neither an agent nor devices
        :raises ServiceUnavailable: Placement does not answer
        """
        set_status, write = hosts.set_status, self.database.write
        changed = write(set_status, host, status, reason)
        if not changed:
            # An earlier call may have failed, or may undo its change of a device.
            self.sync_jobs.sync(host)
            changed = write(set_status, host, status, reason)
        if changed:
            self.sync_jobs.sync(host)
            LOG.info('Status of %d devices of host %s: %s', changed, host, status)
        if status is DeviceStatus.ENABLED and (uuids := self.list_changing(host)):
            LOG.info('Jobs change devices of host %s: %s', host, ', '.join(uuids))
        return changed

    def list_changing(self, host: str) -> tuple[str, ...]:
        """Return the uuids of the devices in maintenance that jobs change.

        No call enables them before their change ends.
        """
        return self.database.read(hosts.list_changing_devices, host)

    def forget(
        self, host: str, operation: NewOperation | None = None
    ) -> tuple[RemovedHost, SyncResult]:
        """Delete a host with its devices, handles, jobs, agent and providers.

        :raises HostNotFound: the host has neither an agent nor devices
        :raises ServiceAlive: the agent of the host is up
        :raises HostInUse: ARQs of instances use the host
        :raises ServiceUnavailable: Placement does not answer
        """
        removed = self.database.write(hosts.forget_host, host, operation)
        LOG.info('Deleted host %s: %s', host, removed)
        result = self.sync_jobs.sync_in_mode(host, SyncMode(deep=True, prune=True))
        if not result.problems:
            self.database.write(providers.delete_unused_traits, removed.provider_uuids)
        return removed, result

    @serves(Conductor.delete_service)
    def forget_service(self, context: RequestContext, uuid: str) -> None:
        """Delete a daemon that is down; for an agent, its host with all devices."""
        service = self._find_service(uuid)
        if service.binary == AGENT:
            kind, subject = OperationKind.FORGET, SubjectType.HOST
            self.forget(
                service.host, build_operation(context, kind, subject, service.host)
            )
            return
        if service.state is ServiceState.UP:
            raise ServiceAlive(binary=service.binary, host=service.host)
        self.database.write(services.delete_service, uuid)

    def _find_service(self, uuid: str) -> Service:
        query = Query(filters={'uuid': (uuid,)})
        for service in self.database.read(services.list_services, query):
            return service
        raise ServiceNotFound(uuid=uuid)
