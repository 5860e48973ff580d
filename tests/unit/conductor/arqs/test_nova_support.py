# SPDX-License-Identifier: Apache-2.0
"""Binds and explanations of handles that only some Novas can attach."""

from dataclasses import dataclass, field, replace
from uuid import uuid4

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from cyborg_lite.conductor.arqs.binding import BindHandler, BindRules, build_bind_job
from cyborg_lite.conductor.arqs.nova_support import NovaRules, NovaSupport
from cyborg_lite.conductor.capacity.explanations import ExplanationService
from cyborg_lite.conductor.providers.sync import PlacementSync
from cyborg_lite.db.arqs import arqs, binding
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, now
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.arqs.arqs import Arq, Scope
from cyborg_lite.model.capacity.explanations import HostFit, ReasonCode
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.profiles.device_profiles import DeviceProfile
from cyborg_lite.model.queries import Query
from cyborg_lite.model.traits import OWNER_NOVA
from tests.builders.bind_rules import RULES
from tests.builders.provider_rows import add_device
from tests.builders.rows import (
    HOST,
    OWNER,
    PROJECT,
    add_card,
    add_handles,
    add_profile,
    bindings,
)
from tests.doubles.agents import FakeAgents
from tests.doubles.consumers import FakeConsumers
from tests.doubles.placement import FakePlacement

EVERYBODY = Scope(project_id=None)
GROUP = {'resources:PGPU': '1'}
HANDLE = AllocatedHandle(
    uuid='a',
    arq_uuid='b',
    hostname=HOST,
    deployable_name='card',
    driver='NVIDIA',
    control_address='0000:3b:00.0',
    key='k',
    type='MDEV',
)


def change_handles(database: Database, **columns: object) -> None:
    """Change columns of all attach handles."""

    def write(session: Session) -> None:
        session.execute(update(AttachHandle).values(**columns))

    database.write(write)


@dataclass
class Bind:
    """Bind of one ARQ, and the doubles that its job calls."""

    database: Database
    rules: BindRules = RULES
    group: dict[str, str] = field(default_factory=lambda: dict(GROUP))
    needs_host: bool = True
    agents: FakeAgents = field(default_factory=FakeAgents)
    consumers: FakeConsumers = field(default_factory=FakeConsumers)

    def run(self, **columns: object) -> Arq:
        """Bind an ARQ to a card whose handle has the columns; return the ARQ."""
        name = add_profile(self.database, [self.group])
        (arq,) = self.database.write(arqs.create_arqs, name, PROJECT)
        card = add_card(self.database, 1, needs_host=self.needs_host)
        change_handles(self.database, **columns)
        instance = str(uuid4())
        self.consumers.allocate(instance, [card], PROJECT)
        requested = bindings([arq.uuid], card, instance)
        new_job = build_bind_job(requested, self.rules, 'req-1')
        job = self.database.write(
            binding.accept_bind, requested, EVERYBODY, new_job, OWNER
        )
        BindHandler(self.database, self.agents, self.consumers, self.rules).run(job)
        query = Query(filters={'uuid': (arq.uuid,)})
        (stored,) = self.database.read(arqs.list_arqs, query, EVERYBODY)
        return stored


def rules(**options: object) -> BindRules:
    nova = NovaRules(**options)  # type: ignore[arg-type]  # some options
    return replace(RULES, nova=nova)


@pytest.mark.parametrize('needs_host', [True, False])
def test_bind_mdev_old_nova_fails(database: Database, needs_host: bool) -> None:
    bind = Bind(database, needs_host=needs_host)
    bind.consumers.old_hosts.add(HOST)
    arq = bind.run(type='MDEV')
    assert arq.state == 'BindFailed'
    assert 'OWNER_NOVA' in (arq.status_reason or '')
    assert not bind.agents.prepared


def test_bind_mdev_host_with_trait_succeeds(database: Database) -> None:
    bind = Bind(database)
    assert bind.run(type='MDEV').state == 'Bound'
    assert bind.consumers.trait_reads == [HOST]


def test_bind_pci_does_not_read_trait(database: Database) -> None:
    bind = Bind(database)
    assert bind.run().state == 'Bound'
    assert bind.consumers.trait_reads == []


@pytest.mark.parametrize(('option', 'state'), [(True, 'Bound'), (False, 'BindFailed')])
def test_bind_mdev_option_replaces_trait(
    database: Database, option: bool, state: str
) -> None:
    bind = Bind(database, rules(attaches_mdev=option))
    assert bind.run(type='MDEV').state == state
    assert bind.consumers.trait_reads == []


@pytest.mark.parametrize('target', ['host', 'none'])
def test_bind_mdev_not_for_guest_succeeds(database: Database, target: str) -> None:
    bind = Bind(database, group={**GROUP, 'accel:attach_target': target})
    bind.consumers.old_hosts.add(HOST)
    assert bind.run(type='MDEV').state == 'Bound'


def test_bind_mdev_host_without_compute_succeeds(database: Database) -> None:
    bind = Bind(database, rules(hosts_without_compute=('compute-*',)))
    bind.consumers.old_hosts.add(HOST)
    assert bind.run(type='MDEV').state == 'Bound'
    assert bind.consumers.trait_reads == []


def test_bind_unmanaged_function_fails(database: Database) -> None:
    bind = Bind(database)
    arq = bind.run(managed=False)
    assert arq.state == 'BindFailed'
    assert 'attaches_unmanaged' in (arq.status_reason or '')
    assert not bind.agents.prepared


def test_bind_unmanaged_function_allowed_succeeds(database: Database) -> None:
    bind = Bind(database, rules(attaches_unmanaged=True))
    assert bind.run(managed=False).state == 'Bound'


def test_check_handles_caches_trait_for_a_minute() -> None:
    consumers, time = FakeConsumers(), [0.0]
    nova = NovaSupport(consumers, NovaRules(), lambda: time[0])
    nova.check_handles([HANDLE, HANDLE])
    nova.check_handles([HANDLE])
    assert consumers.trait_reads == [HOST]
    time[0] += 60
    nova.check_handles([HANDLE])
    assert consumers.trait_reads == [HOST, HOST]


def test_check_handles_placement_down_raises() -> None:
    consumers = FakeConsumers()
    consumers.is_down = True
    with pytest.raises(ServiceUnavailable):
        NovaSupport(consumers, NovaRules()).check_handles([HANDLE])


class Explainer:
    """Placement with one host, and explanations of one profile there."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.placement = FakePlacement()
        self._root = self.placement.create_provider(str(uuid4()), HOST, None)
        add_handles(database, add_device(database, HOST, '0000:3b:00.0'), 1)
        PlacementSync(database, self.placement).sync(HOST)
        self.placement.calls.clear()

    def mark(self) -> None:
        """Set the trait of Nova 34 on the compute node."""
        self.placement.providers[self._root.uuid].traits = frozenset({OWNER_NOVA})

    def explain(self, **keys: str) -> HostFit:
        """Explain a new profile."""
        groups = ({**GROUP, **{f'accel:{key}': keys[key] for key in keys}},)
        profile = DeviceProfile(str(uuid4()), f'p-{uuid4()}', None, groups, now())
        uuid = self._database.write(profiles.create_profile, profile).uuid
        service = ExplanationService(self._database, self.placement)
        (host,) = service.explain(None, uuid, None).hosts
        return host


@pytest.fixture
def explainer(database: Database) -> Explainer:
    return Explainer(database)


def test_explain_mdev_old_nova_has_reason(
    database: Database, explainer: Explainer
) -> None:
    change_handles(database, type='MDEV')
    host = explainer.explain()
    assert not host.fits
    codes = [reason.code for reason in host.groups[0].reasons]
    assert codes == [ReasonCode.MDEV_NOT_ATTACHED]
    assert len(explainer.placement.calls) == 2
    assert explainer.explain(attach_target='host').fits
    explainer.mark()
    assert explainer.explain().fits


def test_explain_unmanaged_function_has_reason(
    database: Database, explainer: Explainer
) -> None:
    change_handles(database, managed=False)
    (reason,) = explainer.explain().groups[0].reasons
    assert reason.code == ReasonCode.UNMANAGED_NOT_ATTACHED
    assert len(explainer.placement.calls) == 1


@pytest.mark.parametrize('handle_type', ['NVMF', 'VHOST_USER'])
def test_bind_storage_target_needs_other_attach_target(
    database: Database, handle_type: str
) -> None:
    failed = Bind(database).run(type=handle_type)
    assert failed.state == 'BindFailed'
    assert 'Nova attaches no storage targets' in (failed.status_reason or '')
    group = {**GROUP, 'accel:attach_target': 'host'}
    assert Bind(database, group=group).run(type=handle_type).state == 'Bound'
