# SPDX-License-Identifier: Apache-2.0
"""Claims for companion ARQs: two ARQs for one resource share one handle."""

from contextlib import nullcontext

import pytest

from cyborg_lite.db.arqs import arqs, claiming, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Device
from cyborg_lite.errors.arqs import NoFreeHandle
from cyborg_lite.model.arqs.arqs import Arq, State
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.queries import Query
from tests.builders.bind_jobs import ANY_PROJECT, accept_bind
from tests.builders.bound_arqs import bind_arqs
from tests.builders.rows import (
    PROJECT,
    add_arqs,
    add_card,
    add_profile,
    bindings,
    owners,
)
from tests.builders.table_rows import change_rows

XILINX = {'resources:FPGA': '1', 'trait:CUSTOM_FPGA_XILINX': 'required'}


def create_bound_arqs_of(
    database: Database, card: str, group: dict[str, str]
) -> tuple[str, tuple[Arq, ...]]:
    """Bind the ARQs of a new instance; return its uuid and its ARQs."""
    profile = add_profile(database, [group])
    created = database.write(arqs.create_arqs, profile, PROJECT)
    instance = bind_arqs(database, [arq.uuid for arq in created], card)
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
    ('values', 'reason'),
    [
        ({'health': Health.DEGRADED}, ''),
        ({'health': Health.FAILED, 'health_reason': '1 fatal error'}, '1 fatal error'),
        ({'health': Health.GONE}, 'is gone'),
        # Nova may give the device to another instance.
        ({'conflict': 'Managed twice.'}, 'Another service manages'),
    ],
)
def test_claim_unusable_device_is_refused(
    database: Database, values: dict[str, str], reason: str
) -> None:
    card, uuids = add_card(database, 1), add_arqs(database, 1)
    change_rows(database, Device, **values)
    refusal = pytest.raises(NoFreeHandle, match=reason) if reason else nullcontext()
    with refusal:
        bind_arqs(database, uuids, card)
    assert owners(database) == ([] if reason else uuids)


@pytest.mark.parametrize(('used', 'fits'), [(1, True), (2, False), (3, False)])
def test_check_room_counts_units_of_others(
    database: Database, used: int, fits: bool
) -> None:
    card, uuids = add_card(database, 3), add_arqs(database, 2)
    accept_bind(database, bindings(uuids, card))
    refusal = nullcontext() if fits else pytest.raises(NoFreeHandle, match=f'{used} of')
    with refusal:
        database.read(claiming.check_room, uuids, {card: used, 'another': 9})
