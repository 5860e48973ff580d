# SPDX-License-Identifier: Apache-2.0
"""A cloud of one host whose emulated daemons can crash, in one process and thread.

Files and the database persist. The objects of a daemon are discarded when it crashes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from cyborg_lite.conductor.arqs.binding import BindHandler, BindRules, build_bind_job
from cyborg_lite.conductor.arqs.nova_events import NovaEventHandler
from cyborg_lite.conductor.arqs.nova_support import NovaRules
from cyborg_lite.conductor.arqs.releasing import ReleaseHandler
from cyborg_lite.conductor.bitstreams.bitstreams import BitstreamCatalog
from cyborg_lite.conductor.bitstreams.loading import BitstreamLoader
from cyborg_lite.conductor.devices.cleaning import CleanHandler
from cyborg_lite.conductor.devices.devices import HostPeers
from cyborg_lite.conductor.devices.modes import ModeHandler
from cyborg_lite.conductor.jobs.runner import Handler, JobAttempts
from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.db.arqs import arqs, binding, release
from cyborg_lite.db.core import migration
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Base
from cyborg_lite.db.devices import cleanings, deployables, devices, modes
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.jobs import administration, queue
from cyborg_lite.db.profiles import profiles
from cyborg_lite.model.arqs.arqs import Arq, Binding, Scope, State
from cyborg_lite.model.bitstreams.bitstreams import Image
from cyborg_lite.model.devices.cleaning import (
    CleaningRecord,
    CleanState,
    UncleanUnit,
    state_after_use,
)
from cyborg_lite.model.devices.devices import DeviceRecord
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Deployable,
    DiscoveryResult,
)
from cyborg_lite.model.jobs import JobRecord, JobState, ModePayload, Owner
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.profiles.device_profiles import DeviceProfile
from cyborg_lite.model.queries import Query
from cyborg_lite.testing.crash_points import CrashableDatabase, CrashPoint
from cyborg_lite.testing.driver_checks import HOSTNAME, Bench, ConformanceError
from cyborg_lite.testing.fault_injection import ProcessCrash
from cyborg_lite.testing.host import MAX_IMAGE_SIZE, CrashableHost, connect_crashable
from cyborg_lite.testing.peers import (
    PROJECT,
    CrashableNova,
    FakeGlance,
    FakePlacementClient,
)

_ALL_PROJECTS: Final = Scope(project_id=None)
_RULES: Final = BindRules(
    deadline=600,
    event_deadline=600,
    require_allocation=True,
    # The checks are about drivers, whatever Nova attaches of their handles.
    nova=NovaRules(attaches_unmanaged=True),
)
_MAX_ROUNDS: Final = 20  # of conductors leasing jobs until all are done
# The lease expires at once, so that a successor need not wait for it.
_LEASE_MS: Final = -1


_KINDS: Final = (
    OperationKind.BIND,
    OperationKind.RELEASE,
    OperationKind.NOVA_EVENT,
    OperationKind.CLEANING,
    OperationKind.MODE,
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A driver and the ARQs of one instance."""

    bench: Bench
    number: int | None = None
    """Number of ARQs. None: two, or one if the first deployable has one handle only."""
    group: Mapping[str, str] = field(default_factory=dict)
    """Further keys of the device profile group, such as ``accel:bitstream_id``."""
    images: Sequence[tuple[Image, bytes]] = ()
    """Images in Glance with their content."""


class CrashDatabases:
    """Connections to one SQLite file, shared by all runs and emptied before each.

    Most of the cost of a run would otherwise be the compilation of statements.
    """

    def __init__(self, directory: Path) -> None:
        connection = f'sqlite:///{directory / "database"}'
        migration.upgrade(connection)
        self.conductor = CrashableDatabase(connection)
        self.direct = Database(connection)  # without steps

    def delete_rows(self) -> None:
        self.direct.write(_delete_all)

    def close(self) -> None:
        self.conductor.close()
        self.direct.close()


# Any: the session has a type of SQLAlchemy, which only the package db may import.
def _delete_all(session: Any) -> None:
    for table in reversed(Base.metadata.sorted_tables):
        session.execute(table.delete())


class _Conductor:
    """A process of the conductor."""

    def __init__(self, cloud: 'Cloud') -> None:
        crash_point = cloud.crash_point
        self.database = cloud.databases.conductor
        self.owner = Owner(f'kit:{uuid4()}', _LEASE_MS)
        agents = connect_crashable(cloud.host)
        catalog = BitstreamCatalog(cloud.glance, MAX_IMAGE_SIZE)
        loader = BitstreamLoader(self.database, agents, catalog)
        placement = FakePlacementClient(crash_point, cloud.provider, cloud.amounts)
        handlers: dict[str, Handler] = {
            OperationKind.BIND: BindHandler(
                self.database, agents, placement, _RULES, loader
            ),
            OperationKind.RELEASE: ReleaseHandler(self.database, agents, loader),
            OperationKind.NOVA_EVENT: NovaEventHandler(self.database, cloud.nova),
            OperationKind.CLEANING: CleanHandler(self.database, agents, placement),
            OperationKind.MODE: ModeHandler(
                self.database, HostPeers(agents, placement, placement.sync_host)
            ),
        }
        self.job_types = tuple(handlers)
        self.attempts = JobAttempts(self.database, handlers, Metrics())

    def run_jobs(self) -> None:
        for job in self.database.write(
            queue.lease_jobs, self.owner, 16, self.job_types
        ):
            self.attempts.run(job)


class Cloud:
    """A cloud with ARQs to bind and to delete. The client repeats failed calls."""

    def __init__(
        self,
        scenario: Scenario,
        databases: CrashDatabases,
        root: Path,
        crash_point: CrashPoint,
    ) -> None:
        """Create the ARQs.

        :param root: a directory that does not exist yet
        :raises ConformanceError: the driver offers no device
        """
        self.databases = databases
        databases.delete_rows()
        databases.conductor.crash_point = self.crash_point = crash_point
        self.glance = FakeGlance(scenario.images)
        self.nova = CrashableNova(crash_point)
        self.host = CrashableHost(scenario.bench, self.glance, root, crash_point)
        self._database = databases.direct
        self._instance = str(uuid4())
        deployable = self._find_offered()
        number = scenario.number or min(2, len(_list_free(deployable)))
        policy = _list_free(deployable)[0].cleaning
        is_cleaned = state_after_use(policy) is CleanState.DIRTY
        self.expected_cleans = number if is_cleaned else 0  # after the release
        self._report()
        self.provider = self._find_provider(deployable.name)
        self.amounts = {deployable.resource_class or '': number}
        amounts = {
            f'resources:{name}': str(units) for name, units in self.amounts.items()
        }
        group = {**amounts, **scenario.group}
        profile = DeviceProfile(str(uuid4()), 'kit', None, (group,), datetime.now(UTC))
        self._database.write(profiles.create_profile, profile)
        self.arqs = self._database.write(arqs.create_arqs, 'kit', PROJECT)
        self._conductor: _Conductor | None = None  # None: crashed or not started

    # --- the client ---

    def bind(self) -> None:
        """Request the bind until the conductor accepts it; wait until all jobs end."""
        bindings = {
            arq.uuid: Binding(HOSTNAME, self.provider, self._instance)
            for arq in self.arqs
        }
        new_job = build_bind_job(bindings, _RULES, None)

        def request(conductor: _Conductor) -> None:
            write, owner = conductor.database.write, conductor.owner
            accepted = write(
                binding.accept_bind, bindings, _ALL_PROJECTS, new_job, owner
            )
            conductor.attempts.run(accepted)

        self._repeat(request, lambda: self._list_states() != {State.INITIAL})

    def delete(self) -> None:
        """Request the deletion until it is accepted; wait until all jobs end."""
        of_instance = release.delete_arqs_of_instance

        def request(conductor: _Conductor) -> None:
            conductor.database.write(of_instance, self._instance, _ALL_PROJECTS, None)

        self._repeat(request, lambda: self._list_states() <= {State.DELETING})

    def change_mode(self, mode: str) -> None:
        """Request a mode for the first device; wait until the job ends."""
        (record, *_) = self._database.read(devices.list_devices, Query())
        payload = ModePayload(record.uuid, mode)
        accepted: list[bool] = []

        def request(conductor: _Conductor) -> None:
            conductor.database.write(modes.add_change, payload, None)
            accepted.append(True)

        self._repeat(request, lambda: bool(accepted or self._list_jobs()))

    def _repeat(
        self, request: Callable[[_Conductor], None], is_accepted: Callable[[], bool]
    ) -> None:
        while True:
            self._run_in_conductor(request)
            if is_accepted():
                break
        self._wait_for_jobs()

    # --- the conductors ---

    def _wait_for_jobs(self) -> None:
        """Run jobs, in new processes after crashes, until all of them end."""
        for _ in range(_MAX_ROUNDS):
            jobs = self._list_jobs()
            if not jobs:
                return
            for job in jobs:
                if job.state is JobState.WAITING:
                    # Run it now instead of after its delay.
                    self._database.write(administration.retry_job, job.uuid)
            self._run_in_conductor(_Conductor.run_jobs)
            self._report()
        errors = [f'{job.type}: {job.last_error}' for job in self._list_jobs()]
        raise ConformanceError(f'jobs do not end: {"; ".join(errors)}')

    def _list_jobs(self) -> Sequence[JobRecord]:
        return self._database.read(administration.list_jobs, _KINDS)

    def _run_in_conductor(self, operation: Callable[[_Conductor], None]) -> None:
        """Run an operation; after a crash the next operation starts a new process."""
        if self._conductor is None:
            self._conductor = _Conductor(self)
        try:
            operation(self._conductor)
        except ProcessCrash:
            self._conductor = None
            self.crash_point.restart()

    # --- what is visible from outside ---

    def list_arqs(self) -> Sequence[Arq]:
        """Return the ARQs as stored now."""
        return self._database.read(arqs.list_arqs, Query(), _ALL_PROJECTS)

    def _list_states(self) -> set[State]:
        return {arq.state for arq in self.list_arqs()}

    def list_claims(self) -> list[str]:
        """Return the uuids of the ARQs with an attach handle, sorted."""
        records = self._database.read(devices.list_devices, Query(detailed=True))
        return sorted(arq for device in records for arq in device.arqs)

    def list_unclean(self) -> Sequence[UncleanUnit]:
        """Return the units that are not clean."""
        return self._database.read(cleanings.list_unclean_units)

    def list_cleanings(self) -> Sequence[CleaningRecord]:
        """Return the cleaning runs of all devices."""
        records = self._database.read(devices.list_devices, Query())
        return [
            cleaning
            for device in records
            for cleaning in self._database.read(
                cleanings.list_cleanings, device.uuid
            ).cleanings
        ]

    def list_prepared(self) -> list[str]:
        """Return the uuids of the ARQs with a prepared handle on the host, sorted."""
        prepared = self.host.agent.cache.handles.values()
        return sorted(item.handle.arq_uuid for item in prepared)

    def list_devices(self) -> Sequence[DeviceRecord]:
        """Return the devices as stored now."""
        return self._database.read(devices.list_devices, Query())

    def discover(self) -> tuple[DiscoveryResult, ...]:
        """Return the results of a scan; after a crash, by a restarted agent."""
        host = self.host
        has_crashed = self.crash_point.reached is not None
        agent = host.restart_agent() if has_crashed else host.agent
        agent.report()
        return agent.results

    def _report(self) -> None:
        self._database.write(reports.store_report, self.host.agent.report())

    def _find_offered(self) -> Deployable:
        """Return the first deployable with a free handle."""
        results = self.host.agent.results
        for device in (result.device for result in results if result.device):
            for deployable in device.root.walk():
                if deployable.resource_class is not None and _list_free(deployable):
                    return deployable
        raise ConformanceError('the host of the bench offers no device')

    def _find_provider(self, name: str) -> str:
        query = Query(filters={'name': (name,)})
        (record,) = self._database.read(deployables.list_deployables, query)
        return record.rp_uuid or ''


def _list_free(deployable: Deployable) -> Sequence[AttachHandle]:
    return [handle for handle in deployable.handles if not handle.in_use]
