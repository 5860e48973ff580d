# SPDX-License-Identifier: Apache-2.0
"""Deployables and their attributes as shown to clients.

The package ``inventory`` writes both. Admins may add and delete attributes.
"""

from collections import defaultdict
from typing import Final
from uuid import uuid4

from oslo_db.exception import DBDuplicateEntry, DBReferenceError
from sqlalchemy import delete as delete_rows
from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session, aliased

from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.column_types import read_attributes
from cyborg_lite.db.core.query import (
    Collection,
    ConvertibleRows,
    apply_query,
    convert_rows,
    fetch_rows,
    fill_page,
    list_page,
    name_columns,
    select_page,
)
from cyborg_lite.db.core.records import From, Record
from cyborg_lite.db.core.tables import Attribute as AttributeRow
from cyborg_lite.db.core.tables import Deployable as Row
from cyborg_lite.db.core.tables import Device, now
from cyborg_lite.errors.devices import (
    AttributeExists,
    AttributeNotFound,
    DeployableNotFound,
)
from cyborg_lite.model.devices.devices import Attribute, DeployableRecord
from cyborg_lite.model.inventory.attribute_keys import attribute_sort_key
from cyborg_lite.model.queries import SORT_KEYS, Query

_PARENT: Final = aliased(Row)
_ROOT: Final = aliased(Row)
_RELATED: Final = {
    'device_uuid': select(Device.uuid)
    .where(Device.id == Row.device_id)
    .scalar_subquery(),
    'parent_uuid': select(_PARENT.uuid)
    .where(_PARENT.id == Row.parent_id)
    .scalar_subquery(),
    'root_uuid': select(_ROOT.uuid).where(_ROOT.id == Row.root_id).scalar_subquery(),
}

_DEPLOYABLES: Final = Collection(
    Row,
    filters=name_columns(
        Row,
        'uuid',
        'name',
        'device_id',
        'rp_uuid',
        'driver_name',
        'bitstream_id',
        **_RELATED,
    ),
    sorts=name_columns(Row, *SORT_KEYS['deployables']),
    prefixes={'name_prefix': Row.name},
)

_DEPLOYABLE: Final = Record(
    DeployableRecord,
    Row,
    **_RELATED,
    typed_attributes=From(read_attributes, Row.typed_attributes),
)
_ATTRIBUTE: Final = Record(Attribute, AttributeRow)


def list_deployables(session: Session, query: Query) -> tuple[DeployableRecord, ...]:
    """Return the deployables that match the query, with attributes, in two SELECTs.

    A brief query takes one SELECT and returns no attributes.
    """

    def read(page: Query) -> ConvertibleRows[DeployableRecord]:
        rows = select_page(session, _DEPLOYABLE.select(), page, _DEPLOYABLES)
        attributes = _attributes(session, page) if rows and not query.brief else {}
        return rows, lambda row: _DEPLOYABLE.read(
            row, attributes=tuple(attributes.get(row.row_id, ()))
        )

    return fill_page(query, _DEPLOYABLES, read)


def _attributes(session: Session, query: Query) -> dict[int, list[Attribute]]:
    """Return the attributes by id of the deployable, in the order of their display.

    A join, because a list of all ids may exceed the limits of the database.
    """
    ids = apply_query(select(Row.id), query, _DEPLOYABLES).subquery()
    statement = (
        _ATTRIBUTE.select()
        .join(ids, ids.c.id == AttributeRow.deployable_id)
        .where(AttributeRow.hidden.is_(False))
    )
    rows = fetch_rows(session, statement, AttributeRow)
    listed = convert_rows(rows, AttributeRow, _ATTRIBUTE.read)
    attributes: dict[int, list[Attribute]] = defaultdict(list)
    for attribute in sorted(listed, key=lambda item: attribute_sort_key(item.key)):
        attributes[attribute.deployable_id].append(attribute)
    return attributes


# --- attributes ---

_ATTRIBUTES: Final = Collection(
    AttributeRow,
    filters=name_columns(AttributeRow, 'uuid', 'deployable_id', 'key'),
    sorts=name_columns(AttributeRow, *SORT_KEYS['attributes']),
    visible=AttributeRow.hidden.is_(False),
)


def list_attributes(session: Session, query: Query) -> tuple[Attribute, ...]:
    """Return the attributes that match the query, in one SELECT.

    :raises InvalidInput: an unknown filter, sort key or marker, or a deployable id that
        is no integer
    """
    return list_page(session, _ATTRIBUTE.select(), query, _ATTRIBUTES, _ATTRIBUTE.read)


def create_attribute(
    session: Session, deployable_id: int, key: str, value: str
) -> Attribute:
    """Add an attribute that no host report deletes.

    It replaces a reported attribute that an admin has deleted.

    :raises DeployableNotFound: no deployable has the id
    :raises AttributeExists: the deployable has an attribute with the key
    """
    attribute = Attribute(str(uuid4()), deployable_id, key, value, created_at=now())
    deleted = (AttributeRow.deployable_id == deployable_id) & (AttributeRow.key == key)
    change(
        session, delete_rows(AttributeRow).where(deleted, AttributeRow.hidden.is_(True))
    )
    try:
        change(session, insert(AttributeRow), _ATTRIBUTE.write(attribute))
    except DBReferenceError:
        raise DeployableNotFound(uuid=deployable_id) from None
    except DBDuplicateEntry:
        raise AttributeExists(key=key, deployable=deployable_id) from None
    return attribute


def delete_attribute(session: Session, uuid: str) -> None:
    """Delete an attribute.

    The row of a reported attribute is kept but hidden, so that the next host report
    does not create it again.

    :raises AttributeNotFound: no attribute has the uuid
    """
    visible = (AttributeRow.uuid == uuid) & AttributeRow.hidden.is_(False)
    reported = update(AttributeRow).where(visible, AttributeRow.reported.is_(True))
    if change(session, reported.values(hidden=True)):
        return
    if not change(session, delete_rows(AttributeRow).where(visible)):
        raise AttributeNotFound(uuid=uuid)
