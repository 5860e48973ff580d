# SPDX-License-Identifier: Apache-2.0
"""Claims for companion ARQs: two ARQs for one resource share one handle."""

from contextlib import nullcontext
from uuid import uuid4

import pytest
from sqlalchemy import update

from cyborg_lite.db.arqs import arqs, binding, claiming, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device
from cyborg_lite.errors.arqs import NoFreeHandle
from cyborg_lite.model.arqs.arqs import Arq, Scope, State
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.jobs import NewJob
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.queries import Query
from tests.builders.rows import (
    OWNER,
    PROJECT,
    add_arqs,
    add_card,
    add_profile,
    bindings,
    owners,
)

ANY_PROJECT = Scope(project_id=None)
XILINX = {'resources:FPGA': '1', 'trait:CUSTOM_FPGA_XILINX': 'required'}
EVENT_JOB = NewJob(OperationKind.NOVA_EVENT)


def create_bound_arqs_of(
    database: Database, card: str, group: dict[str, str]
) -> tuple[str, tuple[Arq, ...]]:
    """Bind the ARQs of a new instance; return its uuid and its ARQs."""
    profile = add_profile(database, [group])
    created = database.write(arqs.create_arqs, profile, PROJECT)
    instance = str(uuid4())
    binding_by_arq = bindings([arq.uuid for arq in created], card, instance)
    job = database.write(
        binding.accept_bind,
        binding_by_arq,
        ANY_PROJECT,
        NewJob(OperationKind.BIND),
        OWNER,
    )
    database.write(binding.claim_for_bind, job, list(binding_by_arq), None, EVENT_JOB)
    of_instance = Query({'instance_uuid': (instance,)})
    return instance, database.read(arqs.list_arqs, of_instance, ANY_PROJECT)


def test_claim_companion_arqs_after_delete_succeeds(database: Database) -> None:
    card = add_card(database, 1, group=XILINX)
    instance, _ = create_bound_arqs_of(database, card, XILINX)
    database.write(release.delete_arqs_of_instance, instance, ANY_PROJECT, None)
    assert owners(database) == []
    _, pair = create_bound_arqs_of(database, card, XILINX)
    assert [arq.state for arq in pair] == [State.BOUND] * 2


def test_claim_companion_arqs_two_resources_use_two_handles(database: Database) -> None:
    card = add_card(database, 3, group=XILINX)
    _, bound_arqs = create_bound_arqs_of(
        database, card, {**XILINX, 'resources:FPGA': '2'}
    )
    types = [arq.attach_handle_type for arq in bound_arqs]
    assert types == ['PCI', 'PCI', None, None]
    assert len(owners(database)) == 2


@pytest.mark.parametrize(
    ('health', 'is_refused'),
    [(Health.DEGRADED, False), (Health.FAILED, True), (Health.GONE, True)],
)
def test_claim_unusable_device_is_refused(
    database: Database, health: Health, is_refused: bool
) -> None:
    card = add_card(database, 1)
    values = {'health': health, 'health_reason': '1 fatal PCI errors since noon'}
    database.write(lambda session: session.execute(update(Device).values(values)))
    if not is_refused:
        _, (arq,) = create_bound_arqs_of(database, card, {'resources:PGPU': '1'})
        assert arq.state is State.BOUND
        return
    with pytest.raises(NoFreeHandle, match=r'1 fatal PCI errors|is gone'):
        create_bound_arqs_of(database, card, {'resources:PGPU': '1'})
    assert owners(database) == []


def test_claim_device_of_two_services_is_refused(database: Database) -> None:
    """Nova may give the device to another instance."""
    card = add_card(database, 1)
    values = {'conflict': 'Managed twice.'}
    database.write(lambda session: session.execute(update(Device).values(values)))
    with pytest.raises(NoFreeHandle, match='Another service manages'):
        create_bound_arqs_of(database, card, {'resources:PGPU': '1'})
    assert owners(database) == []


@pytest.mark.parametrize(('used', 'fits'), [(1, True), (2, False), (3, False)])
def test_check_room_counts_units_of_others(
    database: Database, used: int, fits: bool
) -> None:
    card, uuids = add_card(database, 3), add_arqs(database, 2)
    database.write(
        binding.accept_bind,
        bindings(uuids, card),
        ANY_PROJECT,
        NewJob(OperationKind.BIND),
        OWNER,
    )
    refusal = nullcontext() if fits else pytest.raises(NoFreeHandle, match=f'{used} of')
    with refusal:
        database.read(claiming.check_room, uuids, {card: used, 'another': 9})
