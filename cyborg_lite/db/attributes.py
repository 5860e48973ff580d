# SPDX-License-Identifier: Apache-2.0
"""Attributes of deployables, reported by drivers or added by admins."""

from collections.abc import Iterable
from typing import Final
from uuid import uuid4

from oslo_db.exception import DBDuplicateEntry, DBReferenceError
from sqlalchemy import delete as delete_rows
from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.change import change
from cyborg_lite.db.query import (
    Collection,
    Rows,
    convert_rows,
    fill_page,
    select_page,
)
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


def list_attributes(session: Session, query: Query) -> tuple[Attribute, ...]:
    """Return the attributes that match the query, in one SELECT.

    :raises InvalidInput: an unknown filter, sort key or marker, or not an integer
    """

    def read(part: Query) -> tuple[Rows, Iterable[Attribute]]:
        visible = select(Row).where(Row.hidden.is_(False))
        rows = select_page(session, visible, part, _ATTRIBUTES)
        return rows, convert_rows(rows, attribute_from_row)

    return fill_page(query, read)


def create_attribute(
    session: Session, deployable_id: int, key: str, value: str
) -> Attribute:
    """Add an attribute that no host report deletes.

    It replaces a reported attribute that an admin has deleted.

    :raises DeployableNotFound: no deployable has the id
    :raises AttributeExists: the deployable has an attribute with the key
    """
    row = {
        'uuid': str(uuid4()),
        'deployable_id': deployable_id,
        'key': key,
        'value': value,
        'created_at': now(),
    }
    deleted = (Row.deployable_id == deployable_id) & (Row.key == key)
    change(session, delete_rows(Row).where(deleted, Row.hidden.is_(True)))
    try:
        session.execute(insert(Row).values(**row))
    except DBReferenceError:
        raise DeployableNotFound(uuid=deployable_id) from None
    except DBDuplicateEntry:
        raise AttributeExists(key=key, deployable=deployable_id) from None
    return attribute_from_row(Row(**row))


def delete_attribute(session: Session, uuid: str) -> None:
    """Delete an attribute.

    The row of a reported attribute is kept but hidden, so that the next host report
    does not create it again.

    :raises AttributeNotFound: no attribute has the uuid
    """
    visible = (Row.uuid == uuid) & Row.hidden.is_(False)
    reported = update(Row).where(visible, Row.reported.is_(True))
    if change(session, reported.values(hidden=True)):
        return
    if not change(session, delete_rows(Row).where(visible)):
        raise AttributeNotFound(uuid=uuid)


def attribute_from_row(row: Row) -> Attribute:
    """Convert a row; only for modules of this package."""
    return Attribute(
        uuid=row.uuid,
        deployable_id=row.deployable_id,
        key=row.key,
        value=row.value,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
