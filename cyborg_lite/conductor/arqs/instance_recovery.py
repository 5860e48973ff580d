# SPDX-License-Identifier: Apache-2.0
"""Recovery of the ARQs that a database has lost, host by host.

The database was restored from a backup, or is empty. Nothing is written that the
agents, Placement and Nova do not agree on.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from oslo_log import log

from cyborg_lite.clients.nova import Nova
from cyborg_lite.conductor.ownership.allocations import AllocationCheck
from cyborg_lite.db.arqs import instance_recovery as store
from cyborg_lite.db.core import incarnations
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import services
from cyborg_lite.db.ownership import allocations
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.arqs.instance_recovery import (
    HostWitnesses,
    NovaInstance,
    RecoveryAction,
    RecoveryStep,
    plan_host,
)
from cyborg_lite.model.hosts.events import HostHandle
from cyborg_lite.model.hosts.incarnations import Quarantine
from cyborg_lite.model.hosts.services import AGENT
from cyborg_lite.model.limits import check_message
from cyborg_lite.model.traits import OWNER_CYBORG
from cyborg_lite.rpc.context import daemon_context
from cyborg_lite.rpc.interface import Agents

LOG = log.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InstanceRecovery:
    """Plans and writes the steps of a recovery."""

    database: Database
    nova: Nova
    agents: Agents
    allocations: AllocationCheck

    def plan(self) -> Iterator[RecoveryStep]:
        """Yield the steps of all hosts; each host is read when its turn comes.

        :raises CyborgError: the database, Placement or Nova does not answer, or Nova
            hides the instances of other projects
        """
        self.allocations.find_unowned()
        agents = {
            service.host: service.digest is not None
            for service in self.database.read(services.list_services)
            if service.binary == AGENT
        }
        hosts = self.allocations.placement.list_hosts_with_trait(OWNER_CYBORG)
        for host in sorted(hosts | agents.keys()):
            if agents.get(host):
                yield from plan_host(self._read_host(host))
                continue
            reason = 'Its agent has not reported the devices of the host: start it.'
            yield RecoveryStep(host, '', RecoveryAction.NONE, reason)

    def find_quarantine(self) -> Quarantine | None:
        """Return the quarantine of the database; None: it is trusted."""
        return self.database.read(incarnations.find_quarantine)

    def end_quarantine(self) -> int | None:
        """Begin the next incarnation of the database; None: it is in no quarantine."""
        return self.database.write(incarnations.end_quarantine)

    def apply(self, step: RecoveryStep) -> bool:
        """Write a step; return False if the database has changed since the plan."""
        if not self.database.write(store.apply_step, step):
            return False
        if step.action is RecoveryAction.REBUILD:
            LOG.warning(
                'ARQs of instance %s on host %s are rebuilt, with units %s; ARQs that '
                'they replace: %s',
                step.instance_uuid,
                step.hostname,
                step.keys,
                ', '.join(step.outdated) or 'none',
            )
        return True

    def _read_host(self, host: str) -> HostWitnesses:
        units = self.database.read(store.list_units, host)
        prepared = self._read_handles(host)
        providers = {unit.rp_uuid for unit in units}
        unowned = self.database.read(allocations.list_unowned, host)
        facts = HostWitnesses(
            host,
            units,
            self.database.read(allocations.list_amounts, providers),
            prepared,
            frozenset(
                (item.consumer_uuid, item.rp_uuid)
                for item in unowned
                if item.unowned_since is not None
            ),
        )
        instances = self._ask_nova(facts)
        profiles = {
            item.device_profile
            for item in instances.values()
            if item is not None and item.device_profile is not None
        }
        suspects = facts.list_suspects()
        arq_uuids = [item.arq_uuid for item in prepared or ()]
        return replace(
            facts,
            instances=instances,
            arqs=self.database.read(store.list_arqs, suspects, arq_uuids),
            profiles=self.database.read(store.list_profiles, profiles),
            is_quarantined=self.find_quarantine() is not None,
        )

    def _read_handles(self, host: str) -> tuple[HostHandle, ...] | None:
        """Return the prepared handles of a host; None: its agent does not answer."""
        try:
            handles = self.agents.list_handles(daemon_context(), host)
            check_message(host, handles, 'HostHandles.handles')
        except CyborgError as error:
            LOG.info('Handles of host %s not read: %s', host, error.text)
            return None
        return handles

    def _ask_nova(self, facts: HostWitnesses) -> Mapping[str, NovaInstance | None]:
        uuids = facts.list_questions()
        # The call fails if Nova hides instances, which would look like deleted ones.
        if not uuids or self.nova.find_missing_instances(()) is None:
            return {}
        return {uuid: self.nova.describe_instance(uuid) for uuid in sorted(uuids)}
