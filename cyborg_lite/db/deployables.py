# SPDX-License-Identifier: Apache-2.0
"""Deployables as shown to clients; the package ``inventory`` writes them."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from cyborg_lite.db.attributes import attribute_from_row
from cyborg_lite.db.query import (
    Collection,
    Rows,
    apply_query,
    convert_rows,
    fetch_rows,
    fill_page,
    select_page,
)
from cyborg_lite.db.tables import Attribute as AttributeRow
from cyborg_lite.db.tables import Deployable as Row
from cyborg_lite.model.attribute_keys import attribute_sort_key
from cyborg_lite.model.devices import Attribute, DeployableRecord
from cyborg_lite.model.queries import Query

_PARENT: Final = aliased(Row)
_ROOT: Final = aliased(Row)

_DEPLOYABLES: Final = Collection(
    Row,
    filters={
        'uuid': Row.uuid,
        'name': Row.name,
        'device_id': Row.device_id,
        'rp_uuid': Row.rp_uuid,
        'driver_name': Row.driver_name,
        'bitstream_id': Row.bitstream_id,
        'parent_uuid': select(_PARENT.uuid)
        .where(_PARENT.id == Row.parent_id)
        .scalar_subquery(),
        'root_uuid': select(_ROOT.uuid)
        .where(_ROOT.id == Row.root_id)
        .scalar_subquery(),
    },
    sorts={
        'uuid': Row.uuid,
        'name': Row.name,
        'num_accelerators': Row.num_accelerators,
        'driver_name': Row.driver_name,
        'created_at': Row.created_at,
        'updated_at': Row.updated_at,
    },
)


def list_deployables(session: Session, query: Query) -> tuple[DeployableRecord, ...]:
    """Return the deployables that match the query, with attributes, in two SELECTs.

    :raises InvalidInput: an unknown filter, sort key or marker
    """

    def read(part: Query) -> tuple[Rows, Iterable[DeployableRecord]]:
        rows = select_page(session, select(Row), part, _DEPLOYABLES)
        attributes = _attributes(session, part) if rows else {}
        return rows, convert_rows(
            rows, lambda row: _record(row, attributes.get(row.id, []))
        )

    return fill_page(query, read)


def _attributes(session: Session, query: Query) -> dict[int, list[Attribute]]:
    """Return the attributes by id of the deployable.

    A join, because a list of all ids may exceed the limits of the database.
    """
    ids = apply_query(select(Row.id), query, _DEPLOYABLES).subquery()
    statement = (
        select(AttributeRow)
        .join(ids, ids.c.id == AttributeRow.deployable_id)
        .where(AttributeRow.hidden.is_(False))
    )
    rows = fetch_rows(session, statement, AttributeRow)
    attributes: dict[int, list[Attribute]] = defaultdict(list)
    for attribute in convert_rows(rows, attribute_from_row):
        attributes[attribute.deployable_id].append(attribute)
    return attributes


def _record(row: Row, attributes: list[Attribute]) -> DeployableRecord:
    return DeployableRecord(
        id=row.id,
        uuid=row.uuid,
        device_id=row.device_id,
        parent_id=row.parent_id,
        root_id=row.root_id,
        name=row.name,
        num_accelerators=row.num_accelerators,
        rp_uuid=row.rp_uuid,
        driver_name=row.driver_name,
        bitstream_id=row.bitstream_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        attributes=tuple(
            sorted(attributes, key=lambda attribute: attribute_sort_key(attribute.key))
        ),
    )
