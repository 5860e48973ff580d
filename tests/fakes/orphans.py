# SPDX-License-Identifier: Apache-2.0
"""A small cloud in which requests are bound, and then forgotten in various ways."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import uuid4

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from cyborg_lite.conductor.audit import Audit, AuditRules
from cyborg_lite.conductor.binding import BindRules, bind_job
from cyborg_lite.db import binding, jobs, release
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Arq, AttachHandle, FormerServer, Job
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.audit import Finding, Report
from cyborg_lite.model.jobs import Job as Running
from cyborg_lite.model.jobs import Kind, NewJob
from tests.fakes.consumers import FakeConsumers
from tests.fakes.rows import HOST, OWNER, PROJECT, add_arqs, add_card, bindings
from tests.fakes.servers import FakeServers

EVERYBODY = Scope(project_id=None)
GRACE = 3600.0
LONG_AGO = datetime(2020, 2, 29, 12, 0, tzinfo=UTC)
RULES = BindRules(deadline=240, event_deadline=300, require_allocation=True)


@dataclass
class Cloud:
    """What Nova and Placement say is set by the tests."""

    database: Database
    servers: FakeServers = field(default_factory=FakeServers)
    consumers: FakeConsumers = field(default_factory=FakeConsumers)
    require_allocation: bool = True

    @property
    def audit(self) -> Audit:
        rules = AuditRules(GRACE, self.require_allocation)
        return Audit(self.database, self.servers, self.consumers, rules)

    def find(self) -> Report:
        return self.audit.find()

    def only(self) -> Finding:
        (finding,) = self.find().findings
        return finding

    def remedy(self, finding: Finding) -> bool:
        return self.audit.remedy(finding, 'req-1')

    # --- how things come to be ---

    def accepted(self, *, needs_host: bool = False) -> tuple[str, str, Running]:
        """A request that is being bound, its instance, and the job."""
        instance = str(uuid4())
        uuids = add_arqs(self.database, 1)
        card = add_card(self.database, 1, needs_host=needs_host)
        self.consumers.allocate(instance, [card], PROJECT)
        self.servers.hosts[instance] = HOST
        wanted = bindings(uuids, card, instance)
        new = bind_job(wanted, RULES, None)
        job = self.database.write(binding.accept, wanted, EVERYBODY, new, OWNER)
        return uuids[0], instance, job

    def bound(self, *, needs_host: bool = False) -> tuple[str, str]:
        """A request and its instance, long ago."""
        uuid, instance, job = self.accepted(needs_host=needs_host)
        told = NewJob(Kind.NOVA_EVENT)
        claimed = self.database.write(binding.claim, job, [uuid], None, told)
        event = claimed.job
        if claimed.handles:
            event = self.database.write(
                binding.succeed, claimed.job, [uuid], None, told
            )
        self.database.write(jobs.finish, event)
        self.age()
        return uuid, instance

    def left(self) -> str:
        """A server that gave its accelerator back long ago, and may come again."""
        _uuid, instance = self.bound()
        self.database.write(release.delete_of_instance, instance, EVERYBODY, None)
        long_ago = update(FormerServer).values(left_at=LONG_AGO)
        self.database.write(lambda session: session.execute(long_ago))
        return instance

    def awaited(self) -> list[str]:
        """The servers that may come again, by their age here."""
        wanted = select(FormerServer.instance_uuid).order_by(FormerServer.id)
        return self.database.read(lambda session: list(session.scalars(wanted)))

    # --- what becomes of them ---

    def age(self) -> None:
        """Nobody has touched anything for a long time."""
        self.database.write(_age)

    def touch(self, uuid: str) -> None:
        touched = update(Arq).where(Arq.uuid == uuid)
        self.database.write(
            lambda session: session.execute(
                touched.values(updated_at=datetime.now(UTC))
            )
        )

    def lose_jobs(self) -> None:
        """What no release should do, and a database restored from a backup does."""
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
