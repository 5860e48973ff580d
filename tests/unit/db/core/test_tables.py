# SPDX-License-Identifier: Apache-2.0
"""Tests of the schema: what the database itself prevents, and the types of columns."""

from typing import Any

import pytest
from sqlalchemy import delete, select, update
from sqlalchemy.dialects import mysql, registry
from sqlalchemy.orm import Session
from sqlalchemy.schema import CreateTable

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import (
    Arq,
    ArqEvent,
    AttachHandle,
    Base,
    Job,
)
from cyborg_lite.errors.daemons import DatabaseError
from tests.builders.rows import add_arqs, add_card

TABLES = Base.metadata.sorted_tables


def own_handles(session: Session, arq_uuid: str, number: int) -> None:
    handles = session.scalars(select(AttachHandle).limit(number))
    for handle in handles:
        handle.arq_uuid = arq_uuid


def test_arq_cannot_own_two_handles(database: Database) -> None:
    add_card(database, 2)
    (arq,) = add_arqs(database, 1)
    with pytest.raises(DatabaseError):
        database.write(own_handles, arq, 2)
    database.write(own_handles, arq, 1)


def test_arq_with_handle_cannot_be_deleted(database: Database) -> None:
    add_card(database, 1)
    (arq,) = add_arqs(database, 1)
    database.write(own_handles, arq, 1)
    with pytest.raises(DatabaseError):
        database.write(lambda session: session.execute(delete(Arq)))


def test_instance_slot_cannot_be_taken_twice(database: Database) -> None:
    add_card(database, 1)
    add_arqs(database, 2)
    slot = update(Arq).values(instance_uuid='i', instance_slot=0)
    with pytest.raises(DatabaseError):
        database.write(lambda session: session.execute(slot))


@pytest.mark.parametrize('table', TABLES, ids=str)
def test_mariadb_tables_compare_case_and_hold_microseconds(table: Any) -> None:
    statement = str(CreateTable(table).compile(dialect=mysql.dialect()))
    assert 'COLLATE utf8mb4_bin' in statement
    assert 'ENGINE=InnoDB' in statement
    assert ' DATETIME' not in statement.replace('DATETIME(6)', '')


@pytest.mark.parametrize('model', [Arq, ArqEvent, Job])
def test_growing_tables_have_64_bit_ids(model: type[Base]) -> None:
    table = Base.metadata.tables[model.__tablename__]
    for dialect, id_type in (('postgresql', 'BIGSERIAL'), ('mysql', 'BIGINT')):
        compiled = CreateTable(table).compile(dialect=registry.load(dialect)())
        assert f'id {id_type}' in str(compiled)


def test_constraints_are_named() -> None:
    """A later revision can only drop a constraint whose name is known."""
    unnamed = [
        f'{table.name}: {constraint}'
        for table in TABLES
        for constraint in table.constraints
        if not constraint.name
    ]
    assert unnamed == []
