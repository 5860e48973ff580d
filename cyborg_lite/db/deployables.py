# SPDX-License-Identifier: Apache-2.0
"""Deployables as they are shown; how they come and go is in inventory.py."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from cyborg_lite.db.attributes import attribute
from cyborg_lite.db.query import Collection, narrowed, page
from cyborg_lite.db.reading import Rows, all_rows, filled, readable
from cyborg_lite.db.tables import Attribute as AttributeRow
from cyborg_lite.db.tables import Deployable as Row
from cyborg_lite.model.attribute_keys import rank
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


def listed(session: Session, query: Query) -> tuple[DeployableRecord, ...]:
    """Those that fit with their attributes, in two SELECTs.

    :raises InvalidInput: an unknown filter, sort key or marker
    """

    def read(part: Query) -> tuple[Rows, Iterable[DeployableRecord]]:
        rows = page(session, select(Row), part, _DEPLOYABLES)
        of_them = _attributes(session, part) if rows else {}
        return rows, readable(rows, lambda row: _record(row, of_them.get(row.id, [])))

    return filled(query, read)


def _attributes(session: Session, query: Query) -> dict[int, list[Attribute]]:
    """By deployable. Joined, since a list of all ids may be too long to be sent."""
    ids = narrowed(select(Row.id), query, _DEPLOYABLES).subquery()
    wanted = select(AttributeRow).join(ids, ids.c.id == AttributeRow.deployable_id)
    found: dict[int, list[Attribute]] = defaultdict(list)
    for one in readable(all_rows(session, wanted, AttributeRow), attribute):
        found[one.deployable_id].append(one)
    return found


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
        attributes=tuple(sorted(attributes, key=lambda each: rank(each.key))),
    )
