# SPDX-License-Identifier: Apache-2.0
"""How much of each device Placement may give away."""

from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import jobs, provider_traits, providers
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Arq, AttachHandle
from cyborg_lite.model.providers import ProviderRow
from tests.fakes.daemons import call_down, call_up, fall_silent
from tests.fakes.provider_rows import add_device, change_deployable, change_device
from tests.fakes.rows import HOST, add_arqs, add_card
from tests.fakes.statements import statements


def rows(database: Database, hostname: str = HOST) -> tuple[ProviderRow, ...]:
    return database.read(providers.providers_of_host, hostname)


def only(database: Database) -> ProviderRow:
    (row,) = rows(database)
    return row


def change_handle(database: Database, number: int, **columns: Any) -> None:
    """One of the only card's handles, by its place; the columns are of any type."""
    database.write(_change_handle, number, columns)


def _change_handle(session: Session, number: int, columns: dict[str, Any]) -> None:
    ids = session.scalars(select(AttachHandle.id).order_by(AttachHandle.id)).all()
    session.execute(
        update(AttachHandle).where(AttachHandle.id == ids[number]).values(**columns)
    )


def set_state(database: Database, arq: str, state: str) -> None:
    database.write(_set_state, arq, state)


def _set_state(session: Session, arq: str, state: str) -> None:
    session.execute(update(Arq).where(Arq.uuid == arq).values(state=state))


def test_a_healthy_device_is_offered_whole(database: Database) -> None:
    rp_uuid = add_device(database, HOST, 'gpu', num_accelerators=4)
    found = only(database)
    assert found == ProviderRow(
        rp_uuid=rp_uuid,
        name=f'{HOST}_gpu',
        resource_class='PGPU',
        traits=('CUSTOM_NVIDIA_1EB8',),
        total=4,
        reserved=0,
        device_uuid=found.device_uuid,
        driver='NVIDIA',
    )


def test_what_was_told_and_who_else_has_it_is_known(database: Database) -> None:
    rp_uuid = add_device(database, HOST, 'gpu')
    database.write(provider_traits.record, {rp_uuid: {'CUSTOM_B', 'CUSTOM_A'}})
    change_device(database, rp_uuid, conflict='nova in Placement')
    found = only(database)
    assert found.told == ('CUSTOM_A', 'CUSTOM_B')
    assert (found.conflict, found.contested) == ('nova in Placement', '')
    change_device(database, rp_uuid, health='conflict', health_reason='nova.conf')
    assert only(database).contested == 'nova.conf'


def test_what_only_holds_parts_is_not_offered(database: Database) -> None:
    add_device(database, HOST, 'board', resource_class=None, rp_uuid=None)
    assert rows(database) == ()


def test_each_host_has_its_own(database: Database) -> None:
    add_device(database, 'compute-2', 'gpu')
    assert rows(database) == ()
    assert len(rows(database, 'compute-2')) == 1


def test_what_the_driver_keeps_back_is_reserved(database: Database) -> None:
    add_device(database, HOST, 'gpu', num_accelerators=4, reserved=1)
    assert only(database).reserved == 1


@pytest.mark.parametrize(
    'trouble',
    [{'status': 'maintaining'}, {'health': 'failed'}, {'health': 'gone'}],
)
def test_a_device_that_is_not_to_be_used_is_reserved_whole(
    database: Database, trouble: dict[str, str]
) -> None:
    rp_uuid = add_device(database, HOST, 'gpu', num_accelerators=4)
    change_device(database, rp_uuid, **trouble)
    assert only(database).reserved == 4


@pytest.mark.parametrize('health', ['degraded', 'busy'])
def test_a_device_that_still_works_is_offered(database: Database, health: str) -> None:
    rp_uuid = add_device(database, HOST, 'gpu')
    change_device(database, rp_uuid, health=health)
    assert only(database).reserved == 0


def test_a_handle_that_its_host_lost_is_reserved(database: Database) -> None:
    add_card(database, 4)
    change_handle(database, 0, missing=True)
    assert only(database).reserved == 1


def test_a_handle_that_strangers_use_is_reserved(database: Database) -> None:
    add_card(database, 4)
    change_handle(database, 0, in_use=True)
    assert only(database).reserved == 1


def test_a_handle_in_use_by_its_request_is_not(database: Database) -> None:
    """What is allocated is counted by Placement already."""
    add_card(database, 4)
    (arq,) = add_arqs(database, 1)
    set_state(database, arq, 'Bound')
    change_handle(database, 0, in_use=True, arq_uuid=arq)
    assert only(database).reserved == 0


@pytest.mark.parametrize('state', ['Deleting', 'Unbound', 'UnbindFailed'])
def test_a_handle_that_its_host_has_not_cleaned_is_reserved(
    database: Database, state: str
) -> None:
    add_card(database, 4, needs_host=True)
    (arq,) = add_arqs(database, 1)
    set_state(database, arq, state)
    change_handle(database, 0, arq_uuid=arq)
    assert only(database).reserved == 1


def test_a_handle_is_reserved_once_for_whatever_reasons(database: Database) -> None:
    add_card(database, 4, needs_host=True)
    (arq,) = add_arqs(database, 1)
    set_state(database, arq, 'Deleting')
    change_handle(database, 0, arq_uuid=arq, missing=True, in_use=True)
    change_handle(database, 1, missing=True, in_use=True)
    assert only(database).reserved == 2


def test_no_more_is_reserved_than_there_is(database: Database) -> None:
    add_card(database, 2)
    change_deployable(database, only(database).rp_uuid, reserved=2)
    change_handle(database, 0, missing=True)
    assert only(database).reserved == 2


def test_handles_of_one_device_say_nothing_of_another(database: Database) -> None:
    add_card(database, 2)
    change_handle(database, 0, missing=True)
    add_card(database, 2)
    assert sorted(row.reserved for row in rows(database)) == [0, 1]


def test_of_a_silent_host_all_that_nobody_has_is_reserved(database: Database) -> None:
    add_card(database, 4, needs_host=True)
    bound, unclean = add_arqs(database, 2)
    set_state(database, bound, 'Bound')
    set_state(database, unclean, 'Deleting')
    change_handle(database, 0, arq_uuid=bound)
    change_handle(database, 1, arq_uuid=unclean)
    assert only(database).reserved == 1
    call_down(database, HOST)
    # What is allocated is within the total, and so it may be written once more.
    assert only(database).reserved == 3
    call_up(database, HOST)
    assert only(database).reserved == 1


def test_a_silent_host_offers_no_more_than_one_that_speaks(database: Database) -> None:
    add_card(database, 2)
    bound = add_arqs(database, 2)
    for number, arq in enumerate(bound):
        set_state(database, arq, 'Bound')
        change_handle(database, number, arq_uuid=arq, missing=True)
    before = only(database).reserved
    call_down(database, HOST)
    assert only(database).reserved == before


def test_a_silent_conductor_of_the_same_name_reserves_nothing(
    database: Database,
) -> None:
    add_card(database, 2)
    fall_silent(database, HOST, 'cyborg-lite-conductor')
    call_down(database, 'compute-2')
    assert only(database).reserved == 0


def test_all_of_a_host_is_one_statement(database: Database) -> None:
    for _ in range(3):
        add_card(database, 2)
    with statements(database) as seen:
        assert len(rows(database)) == 3
    assert len(seen) == 1


def test_a_host_waits_for_one_sync_however_often_it_is_called_for(
    database: Database,
) -> None:
    for _ in range(2):
        database.write(jobs.add, providers.sync_job(HOST, f'req-{uuid4()}'))
    (count,) = database.read(jobs.count)
    assert (count.kind, count.count) == ('placement-sync', 1)
