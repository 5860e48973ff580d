# SPDX-License-Identifier: Apache-2.0
"""Stored reports, claimed and released handles, and contents of whole tables."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Attribute, Deployable, Device, Job
from cyborg_lite.db.inventory import reports as inventory
from cyborg_lite.model.inventory.host_report import HostReport
from tests.builders.reports import HOST
from tests.builders.rows import add_arqs

# Rows of a table by their identifying column.
Rows = dict[str, tuple[Any, ...]]


def store(database: Database, *reports: HostReport) -> None:
    for host_report in reports:
        database.write(inventory.store_report, host_report)


def table_of(database: Database, table: Any, name: str, *columns: str) -> Rows:
    """Return all rows by one column. Any: the columns have various types."""
    selected_columns = [getattr(table, column) for column in (name, *columns)]
    rows = database.read(
        lambda session: session.execute(select(*selected_columns)).all()
    )
    return {row[0]: tuple(row[1:]) for row in rows}


def uuids_of_all(database: Database) -> set[str]:
    tables = (Device, Deployable, AttachHandle, Attribute)
    return {uuid for table in tables for uuid in table_of(database, table, 'uuid')}


def claim_handles(database: Database, *keys: str) -> list[str]:
    """Claim each of the handles for an ARQ of its own."""
    uuids = add_arqs(database, len(keys))

    def set_owners(session: Session) -> None:
        for key, uuid in zip(keys, uuids, strict=True):
            owned_handle = update(AttachHandle).where(AttachHandle.key == key)
            session.execute(owned_handle.values(arq_uuid=uuid))

    database.write(set_owners)
    return uuids


def release_handles(database: Database, uuids: Sequence[str]) -> None:
    """Release the handles of ARQs as a finished release job does."""

    def clear_owners(session: Session) -> None:
        owned_handles = update(AttachHandle).where(AttachHandle.arq_uuid.in_(uuids))
        session.execute(owned_handles.values(arq_uuid=None))
        inventory.delete_missing_handles(session, HOST)

    database.write(clear_owners)


def jobs_of(database: Database) -> list[tuple[str, str | None, dict[str, Any], int]]:
    columns = Job.kind, Job.key, Job.payload, Job.rerun_requested
    return [
        (kind, key, payload, rerun_requested)
        for kind, key, payload, rerun_requested in database.read(
            lambda session: session.execute(select(*columns)).all()
        )
    ]
