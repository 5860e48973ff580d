# SPDX-License-Identifier: Apache-2.0
"""ARQs of instances are rebuilt in a database from before their binds."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final
from uuid import uuid4

import pytest
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from cyborg_lite.conductor.arqs.audit import (
    Audit,
    AuditHandler,
    AuditRules,
    build_audit_job,
)
from cyborg_lite.conductor.arqs.instance_recovery import InstanceRecovery
from cyborg_lite.conductor.arqs.unowned_handles import UnownedHandles
from cyborg_lite.conductor.ownership.allocations import AllocationCheck, Pace
from cyborg_lite.db.arqs import arqs as arq_rows
from cyborg_lite.db.arqs import attach_handles
from cyborg_lite.db.arqs import instance_recovery as store
from cyborg_lite.db.core import incarnations
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, AttachHandle, DeviceProfile, Service
from cyborg_lite.db.jobs import administration, queue
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.arqs.instance_recovery import RecoveryAction, RecoveryStep
from cyborg_lite.model.hosts.events import HostHandle
from cyborg_lite.model.hosts.incarnations import NO_MARK
from cyborg_lite.model.hosts.services import AGENT
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from tests.builders.bound_arqs import bind_arqs, read_history
from tests.builders.database_backups import back_up, restore
from tests.builders.orphans import IMPATIENT
from tests.builders.rows import HOST, OWNER, PROJECT, add_card, add_profile
from tests.builders.unclean_units import count_clean_jobs
from tests.doubles.agents import FakeAgents
from tests.doubles.consumers import FakeConsumers
from tests.doubles.instances import FakeInstances

_CLEANED: Final = {'cleaning': 'after-use'}
Shown = list[tuple[str, str | None, str | None, int]]
"""Uuid, provider, handle and group of ARQs."""


class Site:
    """A host whose database is put back, and the witnesses of its instances."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.consumers, self.nova = FakeConsumers(), FakeInstances()
        self.agents = FakeAgents()
        self.database.write(_add_agent)

    def boot(
        self, providers: Sequence[str], groups: Sequence[dict[str, str]] = ()
    ) -> str:
        """Bind an instance with one unit of each provider; the witnesses see it."""
        counts = groups or [{'resources:PGPU': str(len(providers))}]
        profile = add_profile(self.database, list(counts))
        created = self.database.write(arq_rows.create_arqs, profile, PROJECT)
        (provider,) = set(providers)
        instance = bind_arqs(self.database, [arq.uuid for arq in created], provider)
        self.consumers.allocate(instance, list(providers), PROJECT)
        self.nova.hosts[instance], self.nova.profiles[instance] = HOST, profile
        return instance

    def prepare(self) -> None:
        """Let the agent hold what the database says that it has prepared."""
        uuids = self.database.read(lambda s: list(s.scalars(select(Arq.uuid))))
        handles = self.database.read(attach_handles.list_handles_of_arqs, uuids)
        self.agents.handles[HOST] = tuple(
            HostHandle.describe(handle) for handle in handles if handle.needs_host
        )

    def show(self, instance: str) -> Shown:
        query = Query(filters={'instance_uuid': (instance,)})
        listed_arqs = self.database.read(
            arq_rows.list_arqs, query, Scope(project_id=None)
        )
        assert {arq.state for arq in listed_arqs} <= {'Bound'}
        return sorted(
            (
                arq.uuid,
                arq.device_rp_uuid,
                arq.attach_handle_uuid,
                arq.device_profile_group_id,
            )
            for arq in listed_arqs
        )

    @property
    def recovery(self) -> InstanceRecovery:
        check = AllocationCheck(
            self.database, self.consumers, self.nova, Pace(1000, lambda seconds: None)
        )
        return InstanceRecovery(self.database, self.nova, self.agents, check)

    def plan(self) -> list[RecoveryStep]:
        return list(self.recovery.plan())

    def apply(self) -> list[bool]:
        return [self.recovery.apply(step) for step in self.plan()]

    def audit(self) -> None:
        """Run the audit job of a conductor."""
        rules = AuditRules(60, require_allocation=True, pace=IMPATIENT)
        audit = Audit(self.database, self.nova, self.consumers, rules)
        self.database.write(queue.add_job, build_audit_job())
        (job,) = self.database.write(queue.lease_jobs, OWNER, 1, [OperationKind.AUDIT])
        AuditHandler(self.database, audit, reap=False).run(job)

    def lose_arqs(self) -> None:
        """Leave devices and profiles only, as in an empty database after reports.

        The units get other uuids than those that the host knows.
        """
        self.prepare()
        self.database.write(_lose_arqs)

    def read_column(self, name: str) -> list[object]:
        column = select(getattr(AttachHandle, name)).order_by(AttachHandle.id)
        return self.database.read(lambda session: list(session.scalars(column)))


def _add_agent(session: Session) -> None:
    session.add(
        Service(uuid=str(uuid4()), binary=AGENT, host=HOST, version='1', digest='d')
    )


def _lose_arqs(session: Session) -> None:
    empty = {'arq_uuid': None, 'generation': 0, 'bind_generation': 0}
    session.execute(update(AttachHandle).values(**empty))
    session.execute(delete(Arq))
    for number in session.scalars(select(AttachHandle.id)).all():
        row = update(AttachHandle).where(AttachHandle.id == number)
        session.execute(row.values(uuid=str(uuid4())))


@pytest.fixture
def site(database: Database) -> Site:
    return Site(database)


def test_prepared_units_keep_arqs_and_handles(site: Site) -> None:
    card = add_card(site.database, 4, needs_host=True)
    groups = [{'resources:PGPU': '2'}, {'resources:PGPU': '1'}]
    instance = site.boot([card] * 3, groups)
    before = site.show(instance)
    site.lose_arqs()
    (step,) = site.plan()
    assert (step.action, step.instance_uuid) == (RecoveryAction.REBUILD, instance)
    assert site.show(instance) == []
    assert site.apply() == [True]
    after = site.show(instance)
    assert [row[:3] for row in after] == [row[:3] for row in before]
    assert sorted(row[3] for row in after) == [0, 0, 1]
    assert sorted(map(str, site.read_column('generation'))) == ['0', '1', '1', '1']
    steps = [step.step for step in read_history(site.database, after[0][0])]
    assert steps[-2:] == ['Recovered', 'Bound']
    assert site.plan() == []


def _delete_profile(site: Site, instance: str) -> None:
    of_instance = delete(DeviceProfile).where(
        DeviceProfile.name == site.nova.profiles[instance]
    )
    site.database.write(lambda session: session.execute(of_instance))


def _change_profile(site: Site, instance: str) -> None:
    of_instance = update(DeviceProfile).values(groups=[{'resources:PGPU': '2'}])
    site.database.write(lambda session: session.execute(of_instance))


def _prepare_nothing(site: Site, instance: str) -> None:
    site.agents.handles.clear()


def _claim_again(site: Site, instance: str) -> None:
    """Another instance, which lives, owns the unit in the database."""
    (provider,) = site.consumers.find_consumer(instance).providers  # type: ignore[union-attr]  # it has one
    successor = site.boot([provider])
    site.agents.handles[HOST] += ()
    assert site.show(successor)


@pytest.mark.parametrize(
    ('lose', 'reason'),
    [
        (lambda site, uuid: site.nova.busy.add(uuid), 'Nova changes the instance'),
        (lambda site, uuid: site.nova.hosts.update({uuid: 'x'}), 'instance on x'),
        (lambda site, uuid: site.nova.profiles.clear(), 'names no device profile'),
        (_delete_profile, 'is missing: import it'),
        (_change_profile, 'does not match the groups'),
        (lambda site, uuid: site.consumers.forget(uuid), 'has no allocation'),
        (lambda site, uuid: site.agents.down_hosts.add(HOST), 'agent of the host'),
        (_prepare_nothing, 'has not prepared all units'),
        (_claim_again, 'owns unit'),
    ],
)
def test_missing_word_is_named_and_nothing_written(
    site: Site, lose: Callable[[Site, str], object], reason: str
) -> None:
    card = add_card(site.database, 1, needs_host=True)
    instance = site.boot([card])
    site.lose_arqs()
    lose(site, instance)
    step = next(step for step in site.plan() if step.instance_uuid == instance)
    assert step.action is RecoveryAction.NONE
    assert reason in step.reason
    before = site.read_column('arq_uuid')
    assert not any(site.apply())
    assert site.read_column('arq_uuid') == before


def test_unit_of_deleted_instance_stays_prepared(site: Site) -> None:
    card = add_card(site.database, 1, needs_host=True)
    instance = site.boot([card])
    site.lose_arqs()
    del site.nova.hosts[instance]
    (step,) = site.plan()
    assert (step.action, step.keys) == (RecoveryAction.KEEP, step.units[0].key)
    assert 'Nova has no such instance' in step.reason
    assert site.apply() == [False]


def test_host_without_report_is_no_empty_host(site: Site) -> None:
    without_report = update(Service).values(digest=None)
    site.database.write(lambda session: session.execute(without_report))
    (step,) = site.plan()
    assert (step.hostname, step.action) == (HOST, RecoveryAction.NONE)
    assert 'has not reported' in step.reason


def test_handle_without_instance_stays_held(site: Site) -> None:
    card = add_card(site.database, 1, needs_host=True)
    site.boot([card])
    site.lose_arqs()
    (handle,) = site.agents.handles[HOST]
    unknown = replace(handle, instance_uuid='')
    deviceless = replace(handle, instance_uuid='', key='gone')
    site.agents.handles[HOST] = unknown, deviceless
    for step in site.plan()[-2:]:
        assert step.action is RecoveryAction.NONE
        assert f'stays prepared for ARQ {handle.arq_uuid}' in step.reason


def test_only_unit_of_provider_needs_no_host(site: Site) -> None:
    instance = site.boot([add_card(site.database, 1)])
    site.lose_arqs()
    assert site.apply() == [True]
    ((_, _, handle, _),) = site.show(instance)
    assert [handle] == site.read_column('uuid')
    assert site.plan() == []


def test_unknown_units_are_held_until_instance_ends(site: Site) -> None:
    instance = site.boot([add_card(site.database, 3)])
    site.lose_arqs()
    assert [step.action for step in site.plan()] == ['none', 'hold']
    assert site.apply() == [False, True]
    assert site.show(instance) == []
    assert site.read_column('clean_state') == ['occupied'] * 3
    # The hold is not repeated, and does not end while the instance may use a unit.
    assert site.apply() == [False]
    # The host mentions no such unit when it compares its handles.
    comparison = UnownedHandles(
        site.database, site.consumers, site.nova, lambda: None
    ).list_releasable(HOST, ())
    assert comparison.abandoned == ()
    assert site.read_column('clean_state') == ['occupied'] * 3
    site.consumers.forget(instance)
    del site.nova.hosts[instance]
    assert site.apply() == [True]
    assert site.read_column('clean_state') == ['clean'] * 3


def test_audit_frees_held_units_after_instance(site: Site) -> None:
    instance = site.boot([add_card(site.database, 3)])
    site.lose_arqs()
    assert site.apply() == [False, True]
    site.audit()
    assert site.read_column('clean_state') == ['occupied'] * 3
    site.consumers.forget(instance)
    del site.nova.hosts[instance]
    site.audit()
    assert site.read_column('clean_state') == ['clean'] * 3


def test_instance_with_all_units_is_certain(site: Site) -> None:
    instance = site.boot([add_card(site.database, 2)] * 2)
    site.lose_arqs()
    assert site.apply() == [True]
    assert {row[2] for row in site.show(instance)} == set(site.read_column('uuid'))


def test_arq_of_deleted_instance_is_replaced(site: Site) -> None:
    """The backup is older than the end of one instance and the start of the next."""
    card = add_card(site.database, 1, needs_host=True)
    former = site.boot([card])
    backup = back_up(site.database)
    before = site.show(former)
    site.lose_arqs()
    instance = site.boot([card])
    site.prepare()
    profile = site.nova.profiles[instance]
    restore(site.database, backup)
    add_profile(site.database, [{'resources:PGPU': '1'}], profile)
    assert site.apply() == [False]  # Nova still has the former instance
    assert site.show(former) == before
    site.consumers.forget(former)
    del site.nova.hosts[former]
    assert site.apply() == [True]
    assert site.show(former) == []
    assert len(site.show(instance)) == 1


def test_arqs_from_before_shelving_are_replaced(site: Site) -> None:
    """The unit that the instance had before is released, and the new one kept."""
    card = add_card(site.database, 2, needs_host=True)
    instance = site.boot([card])
    (stored,) = site.show(instance)
    site.prepare()
    (handle,) = site.agents.handles[HOST]
    units = site.database.read(store.list_units, HOST)
    free = next(unit for unit in units if unit.arq_uuid is None)
    unshelved = replace(
        handle, uuid=free.uuid, key=free.key, arq_uuid=str(uuid4()), generation=1
    )
    site.agents.handles[HOST] = (unshelved,)
    (step,) = site.plan()
    assert step.outdated == (stored[0],)
    assert site.apply() == [True]
    ((uuid, _, owned, _),) = site.show(instance)
    assert (uuid, owned) == (unshelved.arq_uuid, free.uuid)
    jobs = site.database.read(administration.list_jobs)
    assert sum(job.type == 'release' for job in jobs) == 1


def test_free_units_of_restored_database_are_cleaned(site: Site) -> None:
    """The database may lack a use; the unit of a living instance keeps its data."""
    card = add_card(site.database, 1)
    add_card(site.database, 1)
    site.database.write(lambda s: s.execute(update(AttachHandle).values(**_CLEANED)))
    instance = site.boot([card])
    site.lose_arqs()
    assert [step.action for step in site.plan()] == ['rebuild']
    site.database.write(incarnations.begin_quarantine, NO_MARK, 'the reason')
    assert site.apply() == [True, True]
    assert site.read_column('clean_state') == ['clean', 'dirty']
    assert count_clean_jobs(site.database) == 1
    assert len(site.show(instance)) == 1
    assert site.plan() == []
    assert site.recovery.end_quarantine() == 1
    assert site.recovery.find_quarantine() is None


@pytest.mark.parametrize('needs_host', [True, False])
def test_step_is_refused_after_a_change(site: Site, needs_host: bool) -> None:
    card = add_card(site.database, 1, needs_host=needs_host)
    site.boot([card])
    site.lose_arqs()
    (step,) = site.plan()
    successor = site.boot([card])
    assert site.recovery.apply(step) is False
    assert len(site.show(successor)) == 1
