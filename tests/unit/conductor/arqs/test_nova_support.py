# SPDX-License-Identifier: Apache-2.0
"""Binds of handles that only some Novas can attach."""

from dataclasses import replace

import pytest
from sqlalchemy import update

from cyborg_lite.conductor.arqs.binding import BindRules
from cyborg_lite.conductor.arqs.nova_support import NovaRules, NovaSupport
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.arqs.arqs import Arq
from cyborg_lite.model.devices.devices import AllocatedHandle
from tests.builders.bind_rules import RULES
from tests.builders.binds import Bind
from tests.builders.rows import HOST
from tests.doubles.consumers import FakeConsumers

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


def run(bind: Bind, **columns: object) -> Arq:
    """Bind an ARQ to a card whose handle has the columns; return the ARQ."""
    job = bind.accept()
    changed = update(AttachHandle).values(**columns)
    bind.database.write(lambda session: session.execute(changed))
    bind.handler.run(job)
    (arq,) = bind.arqs
    return arq


def rules(**options: object) -> BindRules:
    nova = NovaRules(**options)  # type: ignore[arg-type]  # some options
    return replace(RULES, nova=nova)


@pytest.mark.parametrize('needs_host', [True, False])
def test_bind_mdev_old_nova_fails(database: Database, needs_host: bool) -> None:
    bind = Bind(database, 1, needs_host)
    bind.consumers.old_hosts.add(HOST)
    arq = run(bind, type='MDEV')
    assert arq.state == 'BindFailed'
    assert 'OWNER_NOVA' in (arq.status_reason or '')
    assert not bind.agents.prepared


def test_bind_mdev_host_with_trait_succeeds(database: Database) -> None:
    bind = Bind(database, 1, needs_host=True)
    assert run(bind, type='MDEV').state == 'Bound'
    assert bind.consumers.trait_reads == [HOST]


def test_bind_pci_does_not_read_trait(database: Database) -> None:
    bind = Bind(database, 1, needs_host=True)
    assert run(bind).state == 'Bound'
    assert bind.consumers.trait_reads == []


@pytest.mark.parametrize(('option', 'state'), [(True, 'Bound'), (False, 'BindFailed')])
def test_bind_mdev_option_replaces_trait(
    database: Database, option: bool, state: str
) -> None:
    bind = Bind(database, 1, rules=rules(attaches_mdev=option))
    assert run(bind, type='MDEV').state == state
    assert bind.consumers.trait_reads == []


@pytest.mark.parametrize('target', ['host', 'none'])
def test_bind_mdev_not_for_guest_succeeds(database: Database, target: str) -> None:
    bind = Bind(database, 1, keys={'accel:attach_target': target})
    bind.consumers.old_hosts.add(HOST)
    assert run(bind, type='MDEV').state == 'Bound'


def test_bind_mdev_host_without_compute_succeeds(database: Database) -> None:
    bind = Bind(database, 1, rules=rules(hosts_without_compute=('compute-*',)))
    bind.consumers.old_hosts.add(HOST)
    assert run(bind, type='MDEV').state == 'Bound'
    assert bind.consumers.trait_reads == []


def test_bind_unmanaged_function_fails(database: Database) -> None:
    bind = Bind(database, 1, needs_host=True)
    arq = run(bind, managed=False)
    assert arq.state == 'BindFailed'
    assert 'attaches_unmanaged' in (arq.status_reason or '')
    assert not bind.agents.prepared


def test_bind_unmanaged_function_allowed_succeeds(database: Database) -> None:
    bind = Bind(database, 1, rules=rules(attaches_unmanaged=True))
    assert run(bind, managed=False).state == 'Bound'


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


@pytest.mark.parametrize('handle_type', ['NVMF', 'VHOST_USER'])
def test_bind_storage_target_needs_other_attach_target(
    database: Database, handle_type: str
) -> None:
    failed = run(Bind(database, 1, needs_host=True), type=handle_type)
    assert failed.state == 'BindFailed'
    assert 'Nova attaches no storage targets' in (failed.status_reason or '')
    for_host = Bind(database, 1, keys={'accel:attach_target': 'host'})
    assert run(for_host, type=handle_type).state == 'Bound'
