# SPDX-License-Identifier: Apache-2.0
"""Attributes of deployables: those that drivers report and those that admins add."""

from collections.abc import Iterable
from typing import Final
from uuid import uuid4

from oslo_db.exception import DBDuplicateEntry, DBReferenceError
from sqlalchemy import delete as delete_rows
from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from cyborg_lite.db.change import change
from cyborg_lite.db.query import Collection, page
from cyborg_lite.db.reading import Rows, filled, readable
from cyborg_lite.db.tables import Attribute as Row
from cyborg_lite.db.tables import now
from cyborg_lite.exceptions import (
    AttributeExists,
    AttributeNotFound,
    DeployableNotFound,
)
from cyborg_lite.model.devices import Attribute
from cyborg_lite.model.queries import Query

_ATTRIBUTES: Final = Collection(
    Row,
    filters={'uuid': Row.uuid, 'deployable_id': Row.deployable_id, 'key': Row.key},
    sorts={
        'uuid': Row.uuid,
        'deployable_id': Row.deployable_id,
        'key': Row.key,
        'created_at': Row.created_at,
        'updated_at': Row.updated_at,
    },
)


def listed(session: Session, query: Query) -> tuple[Attribute, ...]:
    """Those that fit, in one SELECT.

    :raises InvalidInput: an unknown filter, sort key or marker, or no integer
    """

    def read(part: Query) -> tuple[Rows, Iterable[Attribute]]:
        rows = page(session, select(Row), part, _ATTRIBUTES)
        return rows, readable(rows, attribute)

    return filled(query, read)


def create(session: Session, deployable_id: int, key: str, value: str) -> Attribute:
    """Add one that no report takes away.

    :raises DeployableNotFound: there is none with that id
    :raises AttributeExists: the deployable has one with that key
    """
    row = {
        'uuid': str(uuid4()),
        'deployable_id': deployable_id,
        'key': key,
        'value': value,
        'created_at': now(),
    }
    try:
        session.execute(insert(Row).values(**row))
    except DBReferenceError:
        raise DeployableNotFound(uuid=deployable_id) from None
    except DBDuplicateEntry:
        raise AttributeExists(key=key, deployable=deployable_id) from None
    return attribute(Row(**row))


def delete(session: Session, uuid: str) -> None:
    """:raises AttributeNotFound: there is none with that uuid"""
    if not change(session, delete_rows(Row).where(Row.uuid == uuid)):
        raise AttributeNotFound(uuid=uuid)


def attribute(row: Row) -> Attribute:
    """For this package alone: what may leave it."""
    return Attribute(
        uuid=row.uuid,
        deployable_id=row.deployable_id,
        key=row.key,
        value=row.value,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
