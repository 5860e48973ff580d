# SPDX-License-Identifier: Apache-2.0
"""A cloud of one host, in one process and one thread, whose daemons may die.

What would outlive a process is in files; what would not is thrown away when it dies.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from cyborg_lite.conductor.binding import BindHandler, BindRules, bind_job
from cyborg_lite.conductor.bitstreams import Library
from cyborg_lite.conductor.job_attempts import Attempts, Handler
from cyborg_lite.conductor.loading import Loader
from cyborg_lite.conductor.metrics import Metrics
from cyborg_lite.conductor.nova_events import NovaEventHandler
from cyborg_lite.conductor.releasing import ReleaseHandler
from cyborg_lite.crash_kit.fate import Fate, MortalDatabase
from cyborg_lite.crash_kit.host import LARGEST, MortalAgents, MortalHost
from cyborg_lite.crash_kit.peers import (
    PROJECT,
    AllocatingPlacement,
    MortalNova,
    Shelf,
)
from cyborg_lite.db import (
    arqs,
    binding,
    deployables,
    device_profiles,
    devices,
    inventory,
    job_table,
    jobs,
    migration,
    release,
)
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Base
from cyborg_lite.drivers.kit import HOSTNAME, Bench, Nonconforming
from cyborg_lite.drivers.kit_faults import Death
from cyborg_lite.model.arqs import Arq, Binding, Scope, State
from cyborg_lite.model.bitstreams import Image
from cyborg_lite.model.device_profiles import DeviceProfile
from cyborg_lite.model.inventory import Deployable, Finding, Unit
from cyborg_lite.model.jobs import JobRecord, JobState, Kind, Owner
from cyborg_lite.model.queries import Query

_EVERYBODY: Final = Scope(project_id=None)
_RULES: Final = BindRules(deadline=600, event_deadline=600, require_allocation=True)
_MOST_ROUNDS: Final = 20  # in which conductors look for jobs until all are done
# A lease that has ended when it begins: the successor need not wait for it.
_LEASE_MS: Final = -1


@dataclass(frozen=True, slots=True)
class Trial:
    """A driver, and what a server asks of it."""

    bench: Bench
    number: int | None = None
    """Accelerators. None: two, or one where the first that is offered has no more."""
    group: Mapping[str, str] = field(default_factory=dict)
    """What its device profile says besides, such as ``accel:bitstream_id``."""
    images: Sequence[tuple[Image, bytes]] = ()
    """What Glance has."""


class Databases:
    """One file. Runs share it, empty: preparing statements is most of their cost."""

    def __init__(self, directory: Path) -> None:
        connection = f'sqlite:///{directory / "database"}'
        migration.upgrade(connection)
        self.of_conductors = MortalDatabase(connection)
        self.of_others = Database(connection)

    def empty(self) -> None:
        self.of_others.write(_delete_all)

    def close(self) -> None:
        self.of_conductors.close()
        self.of_others.close()


# Any: the session, whose type is that of a library of another room.
def _delete_all(session: Any) -> None:
    for table in reversed(Base.metadata.sorted_tables):
        session.execute(table.delete())


class _Conductor:
    """One process, and what it does without being asked."""

    def __init__(self, cloud: 'Cloud') -> None:
        fate = cloud.fate
        self.database = cloud.databases.of_conductors
        self.owner = Owner(f'kit:{uuid4()}', _LEASE_MS)
        agents = MortalAgents(cloud.host)
        library = Library(cloud.shelf, LARGEST)
        loader = Loader(self.database, agents, library)
        placement = AllocatingPlacement(fate, cloud.provider)
        handlers: dict[str, Handler] = {
            Kind.BIND: BindHandler(self.database, agents, placement, _RULES, loader),
            Kind.RELEASE: ReleaseHandler(self.database, agents, loader),
            Kind.NOVA_EVENT: NovaEventHandler(self.database, cloud.nova),
        }
        self.kinds = tuple(handlers)
        self.attempts = Attempts(self.database, handlers, Metrics())

    def work(self) -> None:
        for job in self.database.write(jobs.take, self.owner, 16, self.kinds):
            self.attempts.run(job)


class Cloud:
    """With requests that are made, to be bound and deleted by a client that insists."""

    def __init__(
        self, trial: Trial, databases: 'Databases', root: Path, fate: Fate
    ) -> None:
        """:param root: a directory that is not there yet
        :raises Nonconforming: the driver offers nothing
        """
        self.databases = databases
        databases.empty()
        databases.of_conductors.fate = self.fate = fate
        self.shelf = Shelf(trial.images)
        self.nova = MortalNova(fate)
        self.host = MortalHost(trial.bench, self.shelf, root, fate)
        self._database = databases.of_others
        self._instance = str(uuid4())
        part = self._offered()
        number = trial.number or min(2, len(_free(part)))
        self._report()
        self.provider = self._provider_of(part.name)
        group = {f'resources:{part.resource_class}': str(number), **trial.group}
        profile = DeviceProfile(str(uuid4()), 'kit', None, (group,), datetime.now(UTC))
        self._database.write(device_profiles.create, profile)
        self.made = self._database.write(arqs.create, 'kit', PROJECT)
        self._conductor: _Conductor | None = None  # None: it is dead, or not started

    # --- the client ---

    def bind(self) -> None:
        """Nova asks for it, again where it got no answer, and all comes to an end."""
        wanted = {
            arq.uuid: Binding(HOSTNAME, self.provider, self._instance)
            for arq in self.made
        }
        new = bind_job(wanted, _RULES, None)

        def ask(conductor: _Conductor) -> None:
            write, owner = conductor.database.write, conductor.owner
            accepted = write(binding.accept, wanted, _EVERYBODY, new, owner)
            conductor.attempts.run(accepted)

        self._insist(ask, lambda: self.states() != {State.INITIAL})

    def delete(self) -> None:
        """As ``bind``."""
        of_instance = release.delete_of_instance

        def ask(conductor: _Conductor) -> None:
            conductor.database.write(of_instance, self._instance, _EVERYBODY, None)

        self._insist(ask, lambda: self.states() <= {State.DELETING})

    def _insist(
        self, ask: Callable[[_Conductor], None], done: Callable[[], bool]
    ) -> None:
        while True:
            self._mortally(ask)
            if done():
                break
        self._settle()

    # --- the conductors ---

    def _settle(self) -> None:
        """Conductors come and go until every job is done."""
        for _ in range(_MOST_ROUNDS):
            waiting = self._unfinished()
            if not waiting:
                return
            for job in waiting:
                if job.state is JobState.WAITING:
                    self._database.write(job_table.retry, job.uuid)  # not later
            self._mortally(_Conductor.work)
            self._report()
        left = [f'{job.kind}: {job.last_error}' for job in self._unfinished()]
        raise Nonconforming(f'what was begun is never done: {"; ".join(left)}')

    def _unfinished(self) -> Sequence[JobRecord]:
        kinds = (Kind.BIND, Kind.RELEASE, Kind.NOVA_EVENT)
        return self._database.read(job_table.listed, kinds)

    def _mortally(self, act: Callable[[_Conductor], None]) -> None:
        """A successor is made when next one is needed."""
        if self._conductor is None:
            self._conductor = _Conductor(self)
        try:
            act(self._conductor)
        except Death:
            self._conductor = None
            self.fate.succeed()

    # --- what can be seen from outside ---

    def arqs(self) -> Sequence[Arq]:
        return self._database.read(arqs.listed, Query(), _EVERYBODY)

    def states(self) -> set[State]:
        return {arq.state for arq in self.arqs()}

    def holders(self) -> list[str]:
        """The requests that hold a handle, in order."""
        found = self._database.read(devices.listed, Query(detailed=True))
        return sorted(arq for device in found for arq in device.arqs)

    def prepared(self) -> list[str]:
        """The requests for which the agent keeps something, in order."""
        kept = self.host.agent.cache.kept.values()
        return sorted(one.handle.arq_uuid for one in kept)

    def findings(self) -> tuple[Finding, ...]:
        """What the agent sees; where somebody died it has been restarted since."""
        host = self.host
        agent = host.agent if self.fate.met is None else host.successor()
        agent.report()
        return agent.findings

    def _report(self) -> None:
        self._database.write(inventory.store, self.host.agent.report())

    def _offered(self) -> Deployable:
        for device in (each.device for each in self.host.agent.findings if each.device):
            for part in device.root.walk():
                if part.resource_class is not None and _free(part):
                    return part
        raise Nonconforming('nothing is offered on the host of the bench')

    def _provider_of(self, name: str) -> str:
        query = Query(filters={'name': (name,)})
        (found,) = self._database.read(deployables.listed, query)
        return found.rp_uuid or ''


def _free(part: Deployable) -> Sequence[Unit]:
    return [unit for unit in part.units if not unit.in_use]
