# SPDX-License-Identifier: Apache-2.0
"""Reports stored, handles held and released, and whole tables to look at."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import inventory
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import AttachHandle, Attribute, Deployable, Device, Job
from cyborg_lite.model.inventory import HostReport
from tests.fakes.cards import HOST
from tests.fakes.rows import add_arqs

# Of whole tables, by what a person would compare.
Rows = dict[str, tuple[Any, ...]]


def store(database: Database, *reports: HostReport) -> None:
    for each in reports:
        database.write(inventory.store, each)


def table_of(database: Database, table: Any, name: str, *columns: str) -> Rows:
    """Rows of a class of `tables` by one column; Any: each has others."""
    wanted = [getattr(table, column) for column in (name, *columns)]
    found = database.read(lambda session: session.execute(select(*wanted)).all())
    return {row[0]: tuple(row[1:]) for row in found}


def uuids_of_all(database: Database) -> set[str]:
    tables = (Device, Deployable, AttachHandle, Attribute)
    return {uuid for table in tables for uuid in table_of(database, table, 'uuid')}


def hold(database: Database, *keys: str) -> list[str]:
    """Give each of these handles to a request."""
    uuids = add_arqs(database, len(keys))

    def take(session: Session) -> None:
        for key, uuid in zip(keys, uuids, strict=True):
            mine = update(AttachHandle).where(AttachHandle.key == key)
            session.execute(mine.values(arq_uuid=uuid))

    database.write(take)
    return uuids


def release(database: Database, uuids: Sequence[str]) -> None:
    """What ends a release does with its handles."""

    def let_go(session: Session) -> None:
        held = update(AttachHandle).where(AttachHandle.arq_uuid.in_(uuids))
        session.execute(held.values(arq_uuid=None))
        inventory.forget_missing(session, HOST)

    database.write(let_go)


def jobs_of(database: Database) -> list[tuple[str, str | None, dict[str, Any], int]]:
    columns = Job.kind, Job.key, Job.payload, Job.touched
    return [
        (kind, key, payload, touched)
        for kind, key, payload, touched in database.read(
            lambda session: session.execute(select(*columns)).all()
        )
    ]
