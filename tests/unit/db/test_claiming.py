# SPDX-License-Identifier: Apache-2.0
"""Where two requests stand for one unit, one of them gets its handle."""

from uuid import uuid4

from cyborg_lite.db import arqs, binding, release
from cyborg_lite.db.engine import Database
from cyborg_lite.model.arqs import Arq, Scope, State
from cyborg_lite.model.jobs import Kind, NewJob
from cyborg_lite.model.queries import Query
from tests.fakes.rows import (
    OWNER,
    PROJECT,
    add_card,
    add_profile,
    bindings,
    owners,
)

EVERYBODY = Scope(project_id=None)
XILINX = {'resources:FPGA': '1', 'trait:CUSTOM_FPGA_XILINX': 'required'}
TOLD = NewJob(Kind.NOVA_EVENT)


def bound(
    database: Database, card: str, group: dict[str, str]
) -> tuple[str, tuple[Arq, ...]]:
    """An instance and its requests, in the order of their creation."""
    profile = add_profile(database, [group])
    made = database.write(arqs.create, profile, PROJECT)
    instance = str(uuid4())
    wanted = bindings([one.uuid for one in made], card, instance)
    job = database.write(binding.accept, wanted, EVERYBODY, NewJob(Kind.BIND), OWNER)
    database.write(binding.claim, job, list(wanted), None, TOLD)
    of_instance = Query({'instance_uuid': (instance,)})
    return instance, database.read(arqs.listed, of_instance, EVERYBODY)


def test_both_requests_of_a_xilinx_card_are_bound_and_one_has_its_handle(
    database: Database,
) -> None:
    card = add_card(database, 1)
    _, (first, second) = bound(database, card, XILINX)
    assert (first.state, second.state) == (State.BOUND, State.BOUND)
    assert first.attach_handle_type == 'PCI'
    assert owners(database) == [first.uuid]
    assert (second.attach_handle_type, second.attach_handle_uuid) == (None, None)
    assert second.attach_handle_info == {}
    assert second.device_rp_uuid == card


def test_when_they_go_the_card_is_free_for_the_next_pair(database: Database) -> None:
    card = add_card(database, 1)
    instance, _ = bound(database, card, XILINX)
    database.write(release.delete_of_instance, instance, EVERYBODY, None)
    assert owners(database) == []
    _, pair = bound(database, card, XILINX)
    assert [one.state for one in pair] == [State.BOUND] * 2


def test_of_several_units_each_has_one_handle(database: Database) -> None:
    card = add_card(database, 3)
    _, made = bound(database, card, {**XILINX, 'resources:FPGA': '2'})
    shown = [one.attach_handle_type for one in made]
    assert shown == ['PCI', 'PCI', None, None]
    assert len(owners(database)) == 2
