# SPDX-License-Identifier: Apache-2.0
"""Requests as they are listed, and what is reported of those on a silent host."""

from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import arqs, binding
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Arq as Row
from cyborg_lite.model.arqs import STORED, Arq, Scope, State
from cyborg_lite.model.jobs import Kind, NewJob
from cyborg_lite.model.queries import Query
from tests.fakes.daemons import call_down, call_up, fall_silent
from tests.fakes.rows import HOST, OWNER, add_arqs, add_card, bindings
from tests.fakes.statements import statements

EVERYBODY = Scope(project_id=None)


def bound(database: Database, *, needs_host: bool, host: str = HOST) -> str:
    """One request of an instance of its own."""
    uuids = add_arqs(database, 1)
    card = add_card(database, 1, needs_host=needs_host)
    wanted = {
        uuid: replace(one, hostname=host)
        for uuid, one in bindings(uuids, card, str(uuid4())).items()
    }
    bind, told = NewJob(Kind.BIND), NewJob(Kind.NOVA_EVENT)
    job = database.write(binding.accept, wanted, EVERYBODY, bind, OWNER)
    claimed = database.write(binding.claim, job, uuids, None, told)
    if claimed.handles:
        database.write(binding.succeed, claimed.job, uuids, None, told)
    return uuids[0]


def listed(database: Database, **filters: tuple[str, ...]) -> tuple[Arq, ...]:
    return database.read(arqs.listed, Query(filters=filters), EVERYBODY)


def only(database: Database) -> Arq:
    (arq,) = listed(database)
    return arq


def stored(database: Database) -> list[str]:
    return database.read(_stored)


def _stored(session: Session) -> list[str]:
    return list(session.scalars(select(Row.state)))


def test_what_needs_a_silent_host_is_unknown_until_it_is_back(
    database: Database,
) -> None:
    bound(database, needs_host=True)
    seen = []
    for change in (call_up, call_down, call_up):
        change(database, HOST)
        seen.append(only(database).state)
        assert stored(database) == ['Bound']
    assert seen == [State.BOUND, State.UNKNOWN, State.BOUND]


def test_it_keeps_its_handle_meanwhile(database: Database) -> None:
    bound(database, needs_host=True)
    before = only(database)
    call_down(database, HOST)
    assert only(database) == replace(before, state=State.UNKNOWN)
    assert before.attach_handle_uuid is not None
    assert before.needs_host


def test_what_needs_nothing_on_its_host_stays_bound(database: Database) -> None:
    bound(database, needs_host=False)
    call_down(database, HOST)
    arq = only(database)
    assert (arq.state, arq.needs_host) == (State.BOUND, False)


@pytest.mark.parametrize('state', sorted(STORED - {State.BOUND}))
def test_only_what_is_bound_can_be_unknown(database: Database, state: State) -> None:
    bound(database, needs_host=True)
    call_down(database, HOST)
    database.write(lambda session: session.execute(update(Row).values(state=state)))
    assert only(database).state is state


def test_other_daemons_and_other_hosts_say_nothing_of_it(database: Database) -> None:
    bound(database, needs_host=True)
    call_down(database, 'compute-2')
    fall_silent(database, HOST, 'cyborg-lite-conductor')
    assert only(database).state is State.BOUND


def test_a_state_is_asked_for_as_it_is_reported(database: Database) -> None:
    lost = bound(database, needs_host=True)
    kept = bound(database, needs_host=False)
    (initial,) = add_arqs(database, 1)
    call_down(database, HOST)

    def found(*states: str) -> list[str]:
        return [arq.uuid for arq in listed(database, state=states)]

    assert found('Unknown') == [lost]
    assert found('Bound') == [kept]
    assert found('Bound', 'Unknown') == [lost, kept]
    assert found('Initial') == [initial]


def test_a_list_is_one_statement(database: Database) -> None:
    bound(database, needs_host=True)
    bound(database, needs_host=False)
    call_down(database, HOST)
    with statements(database) as seen:
        assert len(listed(database)) == 2
    assert len(seen) == 1
