# SPDX-License-Identifier: Apache-2.0
"""Attach handles that ARQs own: data for the host, cleaning and rebuilding."""

import pytest
from sqlalchemy import select, update

from cyborg_lite.db.arqs import attach_handles
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, AttachHandle
from tests.builders.bound_arqs import create_bound_arqs
from tests.builders.rows import HOST, add_card
from tests.builders.service_rows import mark_down, mark_up


def set_state(database: Database, state: str) -> None:
    """Set the state of all ARQs."""
    statement = update(Arq).values(state=state)
    database.write(lambda session: session.execute(statement))


def read_handle_uuid(database: Database, arq_uuid: str) -> str:
    """Return the uuid of the handle that an ARQ owns."""
    statement = select(AttachHandle.uuid).where(AttachHandle.arq_uuid == arq_uuid)
    return database.read(lambda session: session.scalars(statement).one())


def test_list_handles_of_arqs_returns_given_arqs_only(database: Database) -> None:
    first, second = create_bound_arqs(database, 2)
    (handle,) = database.read(attach_handles.list_handles_of_arqs, [second])
    assert (handle.arq_uuid, handle.hostname) == (second, HOST)
    assert handle.uuid != read_handle_uuid(database, first)
    assert (handle.needs_host, handle.preparing, handle.generation) == (True, False, 1)
    assert handle.load is None


def test_list_handles_of_arqs_shows_agent_down(database: Database) -> None:
    uuids = create_bound_arqs(database, 1)
    for change, host_down in ((mark_up, False), (mark_down, True)):
        change(database, HOST)
        (handle,) = database.read(attach_handles.list_handles_of_arqs, uuids)
        assert handle.host_down is host_down


@pytest.mark.parametrize(
    ('state', 'is_unclean'),
    [('Bound', False), ('Deleting', True), ('Unbound', True), ('UnbindFailed', True)],
)
def test_find_unclean_handle_depends_on_arq_state(
    database: Database, state: str, is_unclean: bool
) -> None:
    (uuid,) = create_bound_arqs(database, 1)
    set_state(database, state)
    handle_uuid = read_handle_uuid(database, uuid)
    handle = database.read(attach_handles.find_unclean_handle, handle_uuid)
    assert (handle is not None) is is_unclean


def test_find_unclean_handle_passthrough_is_none(database: Database) -> None:
    (uuid,) = create_bound_arqs(database, 1, needs_host=False)
    set_state(database, 'Unbound')
    handle_uuid = read_handle_uuid(database, uuid)
    assert database.read(attach_handles.find_unclean_handle, handle_uuid) is None


def test_list_handles_to_rebuild_returns_provisioning_only(database: Database) -> None:
    uuids = create_bound_arqs(database, 2)
    assert database.read(attach_handles.list_handles_to_rebuild, HOST) == ()
    set_state(database, 'Provisioning')
    handles = database.read(attach_handles.list_handles_to_rebuild, HOST)
    assert sorted(handle.arq_uuid for handle in handles) == sorted(uuids)
    assert database.read(attach_handles.list_handles_to_rebuild, 'compute-2') == ()


@pytest.mark.parametrize('column', ['in_use', 'missing', 'preparing'])
def test_free_excludes_used_missing_and_preparing(
    database: Database, column: str
) -> None:
    add_card(database, 2)
    free = select(AttachHandle.id).where(attach_handles.FREE)
    first, second = database.read(lambda session: session.scalars(free).all())
    change = update(AttachHandle).where(AttachHandle.id == first)
    database.write(lambda session: session.execute(change.values({column: True})))
    assert database.read(lambda session: session.scalars(free).all()) == [second]
