# SPDX-License-Identifier: Apache-2.0
"""What a cycle costs does not grow with what else the cloud holds."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event, insert, select, text
from sqlalchemy.orm import Session

from cyborg_lite.db import arqs, binding, jobs, release
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Arq, DeviceProfile, now
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.jobs import Kind, NewJob
from cyborg_lite.model.queries import Query
from tests.fakes.rows import OWNER, PROJECT, add_card, add_profile, bindings
from tests.fakes.statements import statements

EVERYBODY = Scope(project_id=None)
OTHERS = 100_000
_BATCH = 5_000


def cycle(database: Database, profile: str, card: str, number: int) -> list[str]:
    """The statements from the creation of requests to their deletion."""
    instance, told = str(uuid4()), NewJob(Kind.NOVA_EVENT)
    of_instance = Query({'instance_uuid': (instance,)})
    with statements(database) as sent:
        uuids = [arq.uuid for arq in database.write(arqs.create, profile, PROJECT)]
        assert len(uuids) == number
        wanted = bindings(uuids, card, instance)
        bind = NewJob(Kind.BIND)
        job = database.write(binding.accept, wanted, EVERYBODY, bind, OWNER)
        event = database.write(binding.claim, job, uuids, None, told).job
        database.write(jobs.finish, event)
        assert len(database.read(arqs.listed, of_instance, EVERYBODY)) == number
        database.write(release.delete_of_instance, instance, EVERYBODY, None)
    return sent


def crowd(session: Session, profile: str, number: int = OTHERS) -> None:
    """Bound requests of that many other servers."""
    profile_id = session.scalar(
        select(DeviceProfile.id).where(DeviceProfile.name == profile)
    )
    row = {
        'state': 'Bound',
        'device_profile_id': profile_id,
        'device_profile_name': profile,
        'device_profile_group_id': 0,
        'device_profile_group': {'resources:PGPU': '1'},
        'project_id': PROJECT,
        'hostname': 'compute-9',
        'instance_slot': 0,
        'created_at': now(),
    }
    for begin in range(0, number, _BATCH):
        session.execute(
            insert(Arq),
            [
                {**row, 'uuid': str(uuid4()), 'instance_uuid': str(uuid4())}
                for _ in range(begin, min(begin + _BATCH, number))
            ],
        )


@pytest.mark.parametrize('number', [1, 8])
def test_a_cycle_costs_the_same_in_an_empty_cloud_and_in_a_full_one(
    database: Database, number: int
) -> None:
    profile = add_profile(database, [{'resources:PGPU': str(number)}])
    card = add_card(database, 16)
    alone = cycle(database, profile, card, number)
    database.write(crowd, profile)
    among_others = cycle(database, profile, card, number)
    assert among_others == alone
    # 2 to create, 4 to accept, 6 to bind, 1 to end the job, 1 to read, 5 to delete.
    assert len(alone) <= 19


def test_eight_requests_cost_as_many_statements_as_one(database: Database) -> None:
    card = add_card(database, 16)
    one, eight = (
        cycle(database, add_profile(database, [{'resources:PGPU': str(n)}]), card, n)
        for n in (1, 8)
    )
    assert len(one) == len(eight)


@pytest.mark.parametrize('detailed', [False, True])
def test_requests_of_an_instance_are_one_statement_by_an_index(
    database: Database, detailed: bool
) -> None:
    profile = add_profile(database, [{'resources:PGPU': '1'}])
    database.write(crowd, profile, 10_000)
    of_one = Query({'instance_uuid': (str(uuid4()),)}, detailed=detailed)
    (statement,) = sent_by(
        database, lambda: database.read(arqs.listed, of_one, EVERYBODY)
    )
    plan = explained(database, *statement)
    # SQLite has no names for the indexes of its unique constraints.
    assert 'uq_arqs_instance_uuid' in plan or 'SEARCH arqs USING INDEX' in plan


def sent_by(database: Database, act: Callable[[], object]) -> list[tuple[str, Any]]:
    """The statements with their parameters, as the driver of the database has them."""
    sent: list[tuple[str, Any]] = []

    def record(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.lstrip().startswith('SELECT'):
            sent.append((statement, parameters))

    for engine in database.engines:
        event.listen(engine, 'before_cursor_execute', record)
    try:
        act()
    finally:
        for engine in database.engines:
            event.remove(engine, 'before_cursor_execute', record)
    return sent


def explained(database: Database, statement: str, parameters: Any) -> str:
    """How the database means to find it."""
    engine = database.engines[0]
    explain = 'EXPLAIN QUERY PLAN' if engine.dialect.name == 'sqlite' else 'EXPLAIN'
    with engine.connect() as connection:
        if engine.dialect.name == 'postgresql':
            connection.execute(text('ANALYZE arqs'))
        rows = connection.exec_driver_sql(f'{explain} {statement}', parameters)
        return ' '.join(map(str, rows))
