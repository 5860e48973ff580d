# SPDX-License-Identifier: Apache-2.0
"""Answers about capacity, compared with a real Placement after each disturbance."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from sqlalchemy import delete, func, insert, select, update
from sqlalchemy.orm import Session

from cyborg_lite.conductor.capacity.explanations import ExplanationService
from cyborg_lite.conductor.metrics.conductor_metrics import Metrics
from cyborg_lite.conductor.ownership.allocations import AllocationCheck
from cyborg_lite.db.arqs import binding, release
from cyborg_lite.db.capacity.provider_capacity import list_provider_capacities
from cyborg_lite.db.core.tables import AttachHandle, Deployable, LoadedRegion, now
from cyborg_lite.db.hosts import hosts
from cyborg_lite.db.hosts.host_topology import read_host_topology
from cyborg_lite.db.profiles import profiles
from cyborg_lite.model.arqs.arqs import Binding
from cyborg_lite.model.capacity.explanations import FitResult
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.hosts.topology import Availability, HostTopology
from cyborg_lite.model.inventory.attribute_keys import PLACES
from cyborg_lite.model.profiles.device_profiles import DeviceProfile
from cyborg_lite.rendering.outline import build_outline, describe_counts
from tests.builders.bind_jobs import ANY_PROJECT, BIND_JOB, BOUND_EVENT_JOB
from tests.builders.orphans import IMPATIENT
from tests.builders.provider_rows import add_device, change_deployable, change_device
from tests.builders.rows import OWNER, add_arqs, add_handles
from tests.builders.selector_fleets import add_attribute, make_group
from tests.builders.service_rows import mark_down, mark_up
from tests.doubles.instances import FakeInstances
from tests.servers.databases import database_fixture
from tests.servers.placed_host import Host, host
from tests.servers.placement import remote

__all__ = ['host', 'remote']

database = database_fixture('sqlite')


class Witness:
    """A host with two cards, and all who say how many of their units are free.

    :param size: of the groups in which units are given
    """

    def __init__(self, host: Host, size: int = 1) -> None:
        self.host, self.database, self.size = host, host.database, size
        self.nova = FakeInstances()
        add_handles(self.database, host.gpu, 4)
        self.second = add_device(
            self.database, host.name, '0000:5e:00.0', num_accelerators=2
        )
        change_device(self.database, self.second, control_address='0000:5e:00.0')
        add_handles(self.database, self.second, 2)
        if size > 1:
            make_group(self.database, host.gpu, size, cards=2)
            make_group(self.database, self.second, size)
        groups = ({'resources:PGPU': str(size)},)
        profile = DeviceProfile(str(uuid4()), f'p-{uuid4()}', None, groups, now())
        self.database.write(profiles.create_profile, profile)
        self.profile = profile.uuid
        self.service = ExplanationService(self.database, host.placement)
        self.consumers: list[str] = []

    # --- disturbances ---

    def bind(self) -> None:
        self.allocate_without_arq()
        arqs, instance = add_arqs(self.database, self.size), self.consumers[-1]
        self.nova.hosts[instance] = self.host.name
        target = Binding(self.host.name, self.host.gpu, instance)
        targets = dict.fromkeys(arqs, target)
        write = self.database.write
        job = write(binding.accept_bind, targets, ANY_PROJECT, BIND_JOB, OWNER)
        write(binding.claim_for_bind, job, arqs, None, BOUND_EVENT_JOB)

    def allocate_without_arq(self) -> None:
        self.consumers.append(self.host.allocate(self.host.gpu, self.size))

    def end_allocation(self) -> None:
        self.host.remote.send('DELETE', f'/allocations/{self.consumers.pop()}')

    def leak(self) -> None:
        """Delete server and ARQ, as a Nova that forgets the allocation."""
        instance = self.consumers[-1]
        del self.nova.hosts[instance]
        self.database.write(
            release.delete_arqs_of_instance, instance, ANY_PROJECT, None
        )

    def clear_leaks(self) -> None:
        for item in self.check.find_unowned():
            assert self.check.clear(item)
        self.consumers.pop()

    def set_device(self, **columns: str) -> None:
        change_device(self.database, self.host.gpu, **columns)

    def set_host(self, status: DeviceStatus) -> None:
        self.database.write(hosts.set_status, self.host.name, status)

    def change_mode(self) -> None:
        """Have the second card offer one unit instead of two."""
        change_deployable(self.database, self.second, num_accelerators=1)
        of_card = select(Deployable.id).where(Deployable.rp_uuid == self.second)
        units = select(AttachHandle.id).where(AttachHandle.deployable_id.in_(of_card))

        def delete_unit(session: Session) -> None:
            unit = session.scalars(units).all()[-1]
            session.execute(delete(AttachHandle).where(AttachHandle.id == unit))

        self.database.write(delete_unit)

    def set_unit(self, number: int, **columns: object) -> None:
        """Change a free unit of the first card."""

        def change(session: Session) -> None:
            units = (
                select(AttachHandle.id)
                .join(Deployable, Deployable.id == AttachHandle.deployable_id)
                .where(Deployable.rp_uuid == self.host.gpu)
                .order_by(AttachHandle.id.desc())
            )
            unit = session.scalars(units).all()[number]
            of_unit = update(AttachHandle).where(AttachHandle.id == unit)
            session.execute(of_unit.values(**columns))

        self.database.write(change)

    def spoil_region(self, reason: str) -> None:
        def change(session: Session) -> None:
            deployable = select(Deployable.id).where(Deployable.rp_uuid == self.second)
            values = {'unusable_reason': reason}
            key = {'deployable_id': session.scalars(deployable).one()}
            if reason:
                session.execute(insert(LoadedRegion).values(**key, **values))
            else:
                session.execute(update(LoadedRegion).values(**values))

        self.database.write(change)

    def make_elastic(self) -> None:
        """Let the first card offer four units of one slot or two of two slots."""

        def change(session: Session) -> None:
            first = select(Deployable).where(Deployable.rp_uuid == self.host.gpu)
            small = session.scalars(first).one()
            large = Deployable(
                uuid=str(uuid4()),
                device_id=small.device_id,
                name=f'{small.name}_large',
                resource_class='VGPU',
                traits=[],
                num_accelerators=2,
                rp_uuid=(name := str(uuid4())),
            )
            session.add(large)
            session.flush()
            self.large = name

        self.database.write(change)
        add_handles(self.database, self.large, 2)
        for provider, places in (
            (self.host.gpu, '0,1,2,3:1'),
            (self.large, '0,2:2'),
        ):
            self.database.write(add_attribute, provider, PLACES, places)

    def occupy_large(self, state: str) -> None:
        """Have a unit of two unused slots wait for its cleaning run, or end that."""

        def change(session: Session) -> None:
            large = select(Deployable.id).where(Deployable.rp_uuid == self.large)
            units = select(func.min(AttachHandle.id)).where(
                AttachHandle.deployable_id.in_(large)
            )
            used = session.scalar(select(func.max(AttachHandle.place))) or 0
            values = {'clean_state': state, 'place': 0 if used >= 2 else 2}
            unit = update(AttachHandle).where(AttachHandle.id == session.scalar(units))
            session.execute(unit.values(**values))

        self.database.write(change)

    # --- answers ---

    @property
    def check(self) -> AllocationCheck:
        return AllocationCheck(self.database, self.host.placement, self.nova, IMPATIENT)

    def count_in_placement(self) -> int:
        free = 0
        for uuid in (self.host.gpu, self.second):
            stock = self.host.placement.get_inventories(uuid).inventories['PGPU']
            used = self.host.placement.get_usages(uuid).get('PGPU', 0)
            free += max(0, stock.total - stock.reserved - used)
        return free

    def read_topology(self) -> HostTopology:
        return self.database.read(read_host_topology, self.host.name)

    def list_answers(self) -> Iterator[tuple[str, int]]:
        """Yield who answers, and the number of free units."""
        capacities = self.database.read(list_provider_capacities)
        requested = [item for item in capacities if item.resource_class == 'PGPU']
        totals = sum((Counter(item.states) for item in requested), Counter())
        yield 'table', totals[Availability.FREE]
        is_open = [item for item in requested if item.closed is None]
        yield 'database', sum(item.free for item in is_open)
        topology = self.read_topology()
        by_class = Counter(
            (item.resource_class, unit.availability)
            for device in topology.devices
            for item in device.deployables
            for unit in item.units
        )
        counts = Counter({state: by_class['PGPU', state] for state in Availability})
        assert counts == totals
        yield 'topology', counts[Availability.FREE]
        header = build_outline(topology).lines[1]
        sums: Counter[Availability] = Counter()
        for (_, state), number in by_class.items():
            sums[state] += number
        assert header == describe_counts(
            {state: sums[state] for state in Availability if sums[state]}
        )
        metrics = Metrics()
        metrics.add_database_metrics(self.database)
        for state in Availability:
            labels = f'availability="{state}",resource_class="PGPU"'
            pattern = rf'cyborg_lite_units{{{labels}}} (\d+)\.0'
            (value,) = re.findall(pattern, metrics.format_text())
            assert int(value) == counts[state]
        capacity = self.service.count_capacity(None, self.profile, self.host.name)
        yield 'capacity', capacity.servers * self.size
        explanation = self.service.explain(None, self.profile, self.host.name)
        fits = explanation.result is FitResult.FITS
        yield 'explanation', self.count_in_placement() if fits else 0


Disturbance = tuple[str, Callable[[Witness], object], int]
DISTURBANCES: list[Disturbance] = [
    ('nothing', lambda host: None, 6),
    ('bound', Witness.bind, 5),
    ('foreign allocation', Witness.allocate_without_arq, 4),
    ('dirty', lambda host: host.set_unit(0, clean_state='dirty'), 3),
    ('in foreign use', lambda host: host.set_unit(1, in_use=True), 2),
    ('agent down', lambda host: mark_down(host.database, host.host.name), 0),
    ('agent up', lambda host: mark_up(host.database, host.host.name), 2),
    ('allocation ended', Witness.end_allocation, 3),
    ('clean failed', lambda host: host.set_unit(0, clean_state='clean_failed'), 3),
    ('clean', lambda host: host.set_unit(0, clean_state='clean'), 4),
    ('use ended', lambda host: host.set_unit(1, in_use=False), 5),
    ('card withheld', lambda host: host.set_device(status='maintaining'), 2),
    ('card enabled', lambda host: host.set_device(status='enabled'), 5),
    ('host disabled', lambda host: host.set_host(DeviceStatus.MAINTAINING), 0),
    ('host enabled', lambda host: host.set_host(DeviceStatus.ENABLED), 5),
    ('failed', lambda host: host.set_device(health='failed', health_reason='ECC'), 2),
    ('well', lambda host: host.set_device(health='ok', health_reason=''), 5),
    (
        'driver reserves',
        lambda host: change_deployable(host.database, host.host.gpu, reserved=2),
        3,
    ),
    (
        'driver reserves all',
        lambda host: change_deployable(host.database, host.host.gpu, reserved=4),
        2,
    ),
    (
        'driver reserves none',
        lambda host: change_deployable(host.database, host.host.gpu, reserved=0),
        5,
    ),
    ('being programmed', lambda host: host.set_unit(0, preparing=True), 5),
    ('unit of instance missing', lambda host: host.set_unit(3, missing=True), 5),
    ('programmed', lambda host: host.set_unit(0, preparing=False), 5),
    ('unit of instance back', lambda host: host.set_unit(3, missing=False), 5),
    ('quarantined', lambda host: host.set_device(quarantine='ECC'), 2),
    ('quarantine ended', lambda host: host.set_device(quarantine=''), 5),
    ('withheld', lambda host: host.set_device(health='withheld'), 2),
    ('degraded', lambda host: host.set_device(health='degraded'), 5),
    ('busy', lambda host: host.set_device(health='busy'), 5),
    ('ok', lambda host: host.set_device(health='ok'), 5),
    ('unit missing', lambda host: host.set_unit(0, missing=True), 4),
    ('unit back', lambda host: host.set_unit(0, missing=False), 5),
    ('region spoiled', lambda host: host.spoil_region('The load failed.'), 3),
    ('region repaired', lambda host: host.spoil_region(''), 5),
    ('mode changed', Witness.change_mode, 4),
    ('leaked', Witness.leak, 4),
    ('foreign allocation beside leak', Witness.allocate_without_arq, 3),
    ('foreign allocation ended', Witness.end_allocation, 4),
    ('leak cleared', Witness.clear_leaks, 5),
]


OF_GROUPS: list[Disturbance] = [
    ('nothing', lambda host: None, 6),
    ('bound', Witness.bind, 4),
    ('member dirty', lambda host: host.set_unit(0, clean_state='dirty'), 2),
    ('member clean', lambda host: host.set_unit(0, clean_state='clean'), 4),
    ('foreign allocation', Witness.allocate_without_arq, 2),
    ('foreign allocation ended', Witness.end_allocation, 4),
    ('member missing', lambda host: host.set_unit(1, missing=True), 2),
    ('member back', lambda host: host.set_unit(1, missing=False), 4),
    (
        'driver reserves one',
        lambda host: change_deployable(host.database, host.second, reserved=1),
        2,
    ),
    ('agent down', lambda host: mark_down(host.database, host.host.name), 0),
    ('agent up', lambda host: mark_up(host.database, host.host.name), 2),
]
OF_ELASTIC_CARD: list[Disturbance] = [
    ('elastic', Witness.make_elastic, 6),
    ('bound', Witness.bind, 5),
    ('larger unit dirty', lambda host: host.occupy_large('dirty'), 3),
    ('foreign allocation', Witness.allocate_without_arq, 2),
    ('card withheld', lambda host: host.set_device(status='maintaining'), 2),
    ('card enabled', lambda host: host.set_device(status='enabled'), 2),
    ('larger unit clean', lambda host: host.occupy_large('clean'), 4),
    ('foreign allocation ended', Witness.end_allocation, 5),
    ('agent down', lambda host: mark_down(host.database, host.host.name), 0),
    ('agent up', lambda host: mark_up(host.database, host.host.name), 5),
]


@pytest.mark.parametrize(
    ('size', 'disturbances'),
    [(1, DISTURBANCES), (2, OF_GROUPS), (1, OF_ELASTIC_CARD)],
    ids=['cards', 'groups', 'elastic'],
)
def test_all_answers_agree_after_each_disturbance(
    host: Host, size: int, disturbances: list[Disturbance]
) -> None:
    witness = Witness(host, size)
    for name, disturb, free in disturbances:
        disturb(witness)
        host.sync()
        witness.check.find_unowned()
        assert witness.count_in_placement() == free, name
        for answer, number in witness.list_answers():
            assert number == free, f'{answer} after {name}'


def test_topology_names_consumer_without_arq(host: Host) -> None:
    witness = Witness(host)
    witness.allocate_without_arq()
    witness.check.find_unowned()
    reasons = [
        unit.reason
        for device in witness.read_topology().devices
        for item in device.deployables
        for unit in item.units
        if unit.availability is Availability.ALLOCATED
    ]
    (consumer,) = witness.consumers
    assert reasons == [f'Consumer {consumer} has allocated it without an ARQ.']


def test_lost_allocation_is_healed_after_host_is_enabled(host: Host) -> None:
    """Placement has lost its database; each unit of the first card is in use."""
    witness = Witness(host)
    for _ in range(4):
        witness.bind()
    instances = list(witness.consumers)
    while witness.consumers:
        witness.end_allocation()
    host.remote.send('DELETE', f'/resource_providers/{host.gpu}')
    witness.set_host(DeviceStatus.MAINTAINING)
    host.sync()
    assert not host.try_allocate(host.gpu)
    witness.set_host(DeviceStatus.ENABLED)
    host.sync()
    for _ in instances:
        assert host.try_allocate(host.gpu)
    assert not host.try_allocate(host.gpu)
