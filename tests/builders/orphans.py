# SPDX-License-Identifier: Apache-2.0
"""Bound ARQs whose instances or jobs have disappeared in various ways."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from cyborg_lite.conductor.arqs.audit import Audit, AuditRules
from cyborg_lite.conductor.arqs.binding import BindRules, build_bind_job
from cyborg_lite.conductor.ownership.allocations import Pace
from cyborg_lite.db.arqs import binding, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, AttachHandle, FormerServer, Job
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.arqs.audit import AuditFinding, AuditReport
from cyborg_lite.model.jobs import Job as Running
from cyborg_lite.model.jobs import NewJob
from cyborg_lite.model.operations import OperationKind
from tests.builders.bind_jobs import confirm_all
from tests.builders.rows import HOST, OWNER, PROJECT, add_arqs, add_card, bindings
from tests.doubles.consumers import FakeConsumers
from tests.doubles.instances import FakeInstances

EVERYBODY = Scope(project_id=None)
GRACE = 3600.0
LONG_AGO = datetime(2020, 2, 29, 12, 0, tzinfo=UTC)
IMPATIENT = Pace(1000, lambda seconds: None)
RULES = BindRules(deadline=240, event_deadline=300, require_allocation=True)


@dataclass
class Cloud:
    """Database with fake Nova and fake Placement that tests control."""

    database: Database
    servers: FakeInstances = field(default_factory=FakeInstances)
    consumers: FakeConsumers = field(default_factory=FakeConsumers)
    require_allocation: bool = True

    @property
    def audit(self) -> Audit:
        rules = AuditRules(GRACE, self.require_allocation, IMPATIENT)
        return Audit(self.database, self.servers, self.consumers, rules)

    def find(self) -> AuditReport:
        return self.audit.find_orphans()

    def only(self) -> AuditFinding:
        (finding,) = self.find().findings
        return finding

    def remedy(self, finding: AuditFinding) -> bool:
        return self.audit.apply_remedy(finding, 'req-1')

    # --- creation ---

    def start_bind(self, *, needs_host: bool = False) -> tuple[str, str, Running]:
        """Create an ARQ that is being bound; return uuid, instance and job."""
        instance = str(uuid4())
        uuids = add_arqs(self.database, 1)
        card = add_card(self.database, 1, needs_host=needs_host)
        self.consumers.allocate(instance, [card], PROJECT)
        self.servers.hosts[instance] = HOST
        selection = bindings(uuids, card, instance)
        new = build_bind_job(selection, RULES, None)
        job = self.database.write(binding.accept_bind, selection, EVERYBODY, new, OWNER)
        return uuids[0], instance, job

    def bound(self, *, needs_host: bool = False) -> tuple[str, str]:
        """Create a bound ARQ of long ago; return its uuid and its instance."""
        uuid, instance, job = self.start_bind(needs_host=needs_host)
        new_event = NewJob(OperationKind.NOVA_EVENT)
        claimed = self.database.write(
            binding.claim_for_bind, job, [uuid], None, new_event
        )
        event = claimed.job
        if claimed.handles:
            event = self.database.write(
                binding.complete_bind,
                claimed.job,
                confirm_all(self.database, [uuid]),
                None,
                new_event,
            )
        self.database.write(queue.finish_job, event)
        self.age()
        return uuid, instance

    def add_former_instance(self) -> str:
        """Create a former instance of long ago, which may be unshelved."""
        _uuid, instance = self.bound()
        self.database.write(release.delete_arqs_of_instance, instance, EVERYBODY, None)
        long_ago = update(FormerServer).values(released_at=LONG_AGO)
        self.database.write(lambda session: session.execute(long_ago))
        return instance

    def list_former_instances(self) -> list[str]:
        """Return the instances that may be unshelved, oldest first."""
        selection = select(FormerServer.instance_uuid).order_by(FormerServer.id)
        return self.database.read(lambda session: list(session.scalars(selection)))

    # --- changes ---

    def age(self) -> None:
        """Make all rows old."""
        self.database.write(_age)

    def touch(self, uuid: str) -> None:
        touched = update(Arq).where(Arq.uuid == uuid)
        self.database.write(
            lambda session: session.execute(
                touched.values(updated_at=datetime.now(UTC))
            )
        )

    def lose_jobs(self) -> None:
        """Delete all jobs, as a database restored from a backup may have none."""
        self.database.write(lambda session: session.execute(delete(Job)))

    def set_state(self, uuid: str, state: str) -> None:
        self.database.write(_set_state, uuid, state)

    def preparing(self) -> list[bool]:
        return self.database.read(_preparing)


def _age(session: Session) -> None:
    session.execute(update(Arq).values(updated_at=LONG_AGO, created_at=LONG_AGO))


def _set_state(session: Session, uuid: str, state: str) -> None:
    changed = update(Arq).where(Arq.uuid == uuid)
    session.execute(changed.values(state=state, updated_at=LONG_AGO))


def _preparing(session: Session) -> list[bool]:
    return list(session.scalars(select(AttachHandle.preparing)))
