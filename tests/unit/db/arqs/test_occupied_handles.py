# SPDX-License-Identifier: Apache-2.0
"""Handles that hosts have prepared without an ARQ; the races with binds."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import attach_handles, occupied_handles
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq
from cyborg_lite.db.jobs import administration
from cyborg_lite.model.hosts.events import HostHandle
from tests.builders.bound_arqs import create_bound_instance
from tests.builders.rows import HOST


def _find_provider(session: Session, arq: str) -> str:
    return (
        session.scalars(select(Arq.device_rp_uuid).where(Arq.uuid == arq)).one() or ''
    )


def test_occupy_claimed_handle_changes_nothing(database: Database) -> None:
    """A bind has claimed the handle since the comparison."""
    arqs, _ = create_bound_instance(database, 1, needs_host=True)
    (stored,) = database.read(attach_handles.list_handles_of_arqs, arqs)
    handle = HostHandle(stored.uuid, 'arq', 'i', 'name', stored.key, 9)
    occupied = database.write(occupied_handles.occupy, HOST, {stored.uuid: handle})
    assert occupied == frozenset()
    assert database.read(attach_handles.list_handles_of_arqs, arqs) == (stored,)
    assert database.read(administration.list_jobs) == ()


def test_vacate_claimed_handle_changes_nothing(database: Database) -> None:
    arqs, _ = create_bound_instance(database, 1, needs_host=True)
    (stored,) = database.read(attach_handles.list_handles_of_arqs, arqs)
    database.write(occupied_handles.vacate, HOST, [stored.uuid])
    assert database.read(attach_handles.list_handles_of_arqs, arqs) == (stored,)
    assert database.read(administration.list_jobs) == ()


def test_list_compared_names_the_host_only(database: Database) -> None:
    arqs, _ = create_bound_instance(database, 1, needs_host=True)
    (stored,) = database.read(attach_handles.list_handles_of_arqs, arqs)
    uuids = [stored.uuid]
    (row,) = database.read(occupied_handles.list_compared, HOST, uuids)
    assert (row.uuid, row.is_claimed, row.is_occupied) == (stored.uuid, True, False)
    assert database.read(occupied_handles.list_compared, 'another', uuids) == ()


def test_list_known_users_names_those_of_provider(database: Database) -> None:
    arqs, instance = create_bound_instance(database, 1)
    _, neighbor = create_bound_instance(database, 1)
    provider = database.read(_find_provider, arqs[0])
    candidates = {instance, neighbor, 'unknown'}
    users = database.read(occupied_handles.list_known_users, provider, candidates)
    assert users == {instance}
