# SPDX-License-Identifier: Apache-2.0
"""Handles that hosts have prepared without an ARQ; the races with binds."""

import pytest
from sqlalchemy import select

from cyborg_lite.db.arqs import attach_handles, occupied_handles
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq
from cyborg_lite.db.jobs import administration
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.hosts.events import HostHandle
from tests.builders.bound_arqs import create_bound_arqs, create_bound_instance
from tests.builders.rows import HOST
from tests.builders.table_rows import read_column


@pytest.fixture
def handle(database: Database) -> AllocatedHandle:
    """Return the handle of a bound ARQ."""
    arqs = create_bound_arqs(database, 1)
    (handle,) = database.read(attach_handles.list_handles_of_arqs, arqs)
    return handle


def check_unchanged(database: Database, handle: AllocatedHandle) -> None:
    arqs = [handle.arq_uuid]
    assert database.read(attach_handles.list_handles_of_arqs, arqs) == (handle,)
    assert database.read(administration.list_jobs) == ()


def test_occupy_claimed_handle_changes_nothing(
    database: Database, handle: AllocatedHandle
) -> None:
    """A bind has claimed the handle since the comparison."""
    prepared = {handle.uuid: HostHandle(handle.uuid, 'arq', 'i', 'n', handle.key, 9)}
    occupied = database.write(occupied_handles.occupy, HOST, prepared)
    assert occupied == frozenset()
    check_unchanged(database, handle)


def test_vacate_claimed_handle_changes_nothing(
    database: Database, handle: AllocatedHandle
) -> None:
    database.write(occupied_handles.vacate, HOST, [handle.uuid])
    check_unchanged(database, handle)


def test_list_compared_names_the_host_only(
    database: Database, handle: AllocatedHandle
) -> None:
    uuids = [handle.uuid]
    (row,) = database.read(occupied_handles.list_compared, HOST, uuids)
    assert (row.uuid, row.is_claimed, row.is_occupied) == (handle.uuid, True, False)
    assert database.read(occupied_handles.list_compared, 'another', uuids) == ()


def test_list_known_users_names_those_of_provider(database: Database) -> None:
    arqs, instance = create_bound_instance(database, 1)
    _, neighbor = create_bound_instance(database, 1)
    of_arq = select(Arq.device_rp_uuid).where(Arq.uuid == arqs[0])
    (provider,) = read_column(database, of_arq)
    candidates = {instance, neighbor, 'unknown'}
    users = database.read(occupied_handles.list_known_users, provider or '', candidates)
    assert users == {instance}
