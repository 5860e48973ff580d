# SPDX-License-Identifier: Apache-2.0
"""Allocations without an ARQ: found by two looks, cleared with Nova's word only."""

from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.arqs.audit import (
    Audit,
    AuditHandler,
    AuditRules,
    build_audit_job,
)
from cyborg_lite.conductor.ownership.allocations import AllocationCheck, Pace
from cyborg_lite.conductor.providers.sync import PlacementSync
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.ownership import allocations
from cyborg_lite.errors.daemons import RemoteError, ServiceUnavailable
from cyborg_lite.model.jobs import NewJob
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.ownership.allocations import AllocationProblem
from cyborg_lite.model.providers.providers import ProviderInventory
from tests.builders.orphans import IMPATIENT
from tests.builders.provider_rows import add_device
from tests.builders.rows import OWNER, add_arqs
from tests.doubles.instances import FakeInstances
from tests.doubles.placement import FakePlacement

HOST = 'compute-1'
CLASS = 'VGPU'


class LeakyCloud:
    """Host with cards of this service, in a cloud with Nova and Placement."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.placement = FakePlacement()
        self.placement.create_provider(str(uuid4()), HOST, None)
        self.nova = FakeInstances()
        self.between_looks: Callable[[], object] = lambda: None
        self.cards = [
            add_device(
                database, HOST, f'card-{n}', resource_class=CLASS, num_accelerators=8
            )
            for n in range(4)
        ]
        self.card = self.cards[0]
        PlacementSync(database, self.placement).sync(HOST)

    @property
    def check(self) -> AllocationCheck:
        pace = Pace(1000, self._wait)
        return AllocationCheck(self.database, self.placement, self.nova, pace)

    def _wait(self, seconds: float) -> None:
        if seconds > 1:
            self.between_looks()

    def allocate(self, *, has_server: bool = True) -> str:
        """Allocate a vGPU for a consumer without an ARQ."""
        consumer = self.placement.allocate(self.card, {CLASS: 1}).uuid
        if has_server:
            self.nova.hosts[consumer] = HOST
        return consumer

    def find(self) -> list[tuple[str, AllocationProblem | None]]:
        return [
            (item.consumer_uuid, item.problem) for item in self.check.find_unowned()
        ]

    def give_arq(self, instance: str) -> None:
        (arq,) = add_arqs(self.database, 1)
        values = {'instance_uuid': instance, 'device_rp_uuid': self.card}
        of_arq = update(Arq).where(Arq.uuid == arq).values(**values)
        self.database.write(lambda session: session.execute(of_arq))

    def run_audit(self, new: NewJob) -> None:
        rules = AuditRules(60, require_allocation=True, pace=IMPATIENT)
        audit = Audit(self.database, self.nova, self.placement, rules)
        self.database.write(queue.add_job, new)
        (job,) = self.database.write(queue.lease_jobs, OWNER, 1, [OperationKind.AUDIT])
        AuditHandler(self.database, audit, reap=False).run(job)

    def count_reads(self) -> int:
        """Return the number of requests since the last count."""
        calls = [call for call in self.placement.calls if call.startswith('GET')]
        self.placement.calls.clear()
        return len(calls)


@pytest.fixture
def cloud(database: Database) -> LeakyCloud:
    return LeakyCloud(database)


def test_allocation_of_deleted_server_is_leaked(cloud: LeakyCloud) -> None:
    consumer = cloud.allocate(has_server=False)
    (leak,) = cloud.check.find_unowned()
    assert (leak.consumer_uuid, leak.rp_uuid, leak.hostname) == (
        consumer,
        cloud.card,
        HOST,
    )
    assert (leak.problem, leak.has_server) == (AllocationProblem.LEAKED, False)
    assert f'{leak.unowned_since:%Y-%m-%d %H:%M}' in leak.reason
    assert 'cyborg-lite-manage audit --apply' in leak.reason
    (later,) = cloud.check.find_unowned()
    assert later.unowned_since == leak.unowned_since
    assert cloud.database.read(allocations.list_leaked) == (later,)
    # A deletion need not raise the generation of the provider.
    del cloud.placement.consumers[consumer]
    assert cloud.find() == []


def test_leak_is_deleted_by_audit_on_request(cloud: LeakyCloud) -> None:
    leak, server = cloud.allocate(has_server=False), cloud.allocate()
    cloud.run_audit(build_audit_job())
    assert cloud.placement.consumers.keys() == {leak, server}
    cloud.run_audit(build_audit_job(applies=True))
    assert cloud.placement.consumers.keys() == {server}


def test_allocation_of_server_without_arq_has_advice(cloud: LeakyCloud) -> None:
    consumer = cloud.allocate()
    (item,) = cloud.check.find_unowned()
    assert (item.problem, item.consumer_uuid) == (AllocationProblem.NO_ARQ, consumer)
    assert 'trait:OWNER_CYBORG=forbidden' in item.reason


@pytest.mark.parametrize('has_server', [True, False])
def test_server_deleted_between_looks_is_no_finding(
    cloud: LeakyCloud, has_server: bool
) -> None:
    """Nova deletes the ARQs of an ordinary server first, and then the allocation."""
    consumer = cloud.allocate(has_server=has_server)
    cloud.between_looks = lambda: cloud.placement.consumers.pop(consumer, None)
    assert cloud.find() == []
    assert cloud.database.read(allocations.list_unowned) == ()


def test_server_built_between_looks_is_no_finding(cloud: LeakyCloud) -> None:
    consumer = cloud.allocate()
    cloud.between_looks = lambda: cloud.give_arq(consumer)
    assert cloud.find() == []


def test_server_changing_at_one_look_is_no_finding(cloud: LeakyCloud) -> None:
    building, elsewhere, changing = (cloud.allocate() for _ in range(3))
    cloud.nova.busy.add(building)
    # The old host keeps the allocation of an evacuated instance for a while.
    cloud.nova.hosts[elsewhere] = 'compute-2'
    cloud.between_looks = lambda: cloud.nova.hosts.pop(changing, None)
    assert cloud.find() == []


def test_leak_ends_when_an_arq_explains_it(cloud: LeakyCloud) -> None:
    consumer = cloud.allocate()
    assert len(cloud.find()) == 1
    cloud.give_arq(consumer)
    assert cloud.database.read(allocations.list_leaked) == ()
    assert cloud.find() == []


def test_cloud_without_nova_has_no_finding(cloud: LeakyCloud) -> None:
    cloud.allocate()
    cloud.nova.configured = False
    assert cloud.find() == []
    (item,) = cloud.database.read(allocations.list_unowned)
    assert item.unowned_since is not None


def test_unreadable_nova_raises_and_keeps_what_placement_says(
    cloud: LeakyCloud,
) -> None:
    cloud.allocate(has_server=False)
    cloud.nova.is_down = True
    with pytest.raises(ServiceUnavailable):
        cloud.find()
    (item,) = cloud.database.read(allocations.list_unowned)
    assert (item.unowned_since is None, item.has_server) == (False, None)
    cloud.nova.is_down, cloud.nova.hidden = False, True
    with pytest.raises(RemoteError):
        cloud.find()


def test_audit_reads_only_providers_that_changed(cloud: LeakyCloud) -> None:
    cloud.count_reads()
    cloud.check.refresh()
    assert cloud.count_reads() == 1 + len(cloud.cards)
    cloud.check.refresh()
    assert cloud.count_reads() == 1
    cloud.give_arq(cloud.allocate())
    cloud.check.refresh()
    assert cloud.count_reads() == 2
    cloud.check.refresh()
    assert cloud.count_reads() == 1


def test_ended_arq_makes_its_allocation_a_leak(cloud: LeakyCloud) -> None:
    """The generation of the provider has not changed since the last audit."""
    consumer = cloud.allocate(has_server=False)
    cloud.give_arq(consumer)
    assert cloud.find() == []
    release = update(Arq).values(instance_uuid=None)
    cloud.database.write(lambda session: session.execute(release))
    assert cloud.find() == [(consumer, AllocationProblem.LEAKED)]


def test_clear_deletes_allocation_of_own_provider_only(cloud: LeakyCloud) -> None:
    consumer = cloud.allocate(has_server=False)
    foreign = cloud.placement.create_provider(str(uuid4()), 'cpus', None).uuid
    cloud.placement.providers[foreign].inventories = {'VCPU': ProviderInventory(8)}
    stored = cloud.placement.consumers[consumer]
    amounts = {**stored.allocations, foreign: {'VCPU': 2}}
    cloud.placement.consumers[consumer] = replace(stored, allocations=amounts)
    (leak,) = cloud.check.find_unowned()
    assert cloud.check.clear(leak)
    assert cloud.placement.consumers[consumer].allocations == {foreign: {'VCPU': 2}}
    assert cloud.database.read(allocations.list_unowned) == ()


def test_clear_without_word_of_nova_changes_nothing(cloud: LeakyCloud) -> None:
    consumer = cloud.allocate(has_server=False)
    (leak,) = cloud.check.find_unowned()
    before = dict(cloud.placement.consumers)
    cloud.nova.is_down = True
    with pytest.raises(ServiceUnavailable):
        cloud.check.clear(leak)
    cloud.nova.is_down, cloud.nova.configured = False, False
    assert not cloud.check.clear(leak)
    cloud.nova.configured, cloud.nova.hosts[consumer] = True, HOST
    assert not cloud.check.clear(leak)
    del cloud.nova.hosts[consumer]
    cloud.nova.migrations.add(consumer)
    assert not cloud.check.clear(leak)
    cloud.nova.migrations.clear()
    cloud.give_arq(consumer)
    assert not cloud.check.clear(leak)
    assert cloud.placement.consumers == before
