# SPDX-License-Identifier: Apache-2.0
"""The names that device profiles have and had; each is of one profile alone.

A profile keeps its former names, since flavors go on saying them. Where a name is that
of one profile and was that of another, which only two clients can bring about who write
at the same moment, it means the profile that has it now.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

from oslo_db.exception import DBDuplicateEntry
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Insert,
    Table,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
)
from sqlalchemy import delete as delete_rows
from sqlalchemy.orm import Session, aliased

from cyborg_lite.db.change import change
from cyborg_lite.db.tables import DeviceProfile, DeviceProfileName
from cyborg_lite.exceptions import DeviceProfileExists

_OTHER: Final = aliased(DeviceProfile)


def bears(name: str | BindParameter[str]) -> ColumnElement[bool]:
    """True of the profile of that name; both lookups are of unique indexes."""
    now = select(_OTHER.id).where(_OTHER.name == name)
    formerly = select(DeviceProfileName.device_profile_id).where(
        DeviceProfileName.name == name
    )
    found = func.coalesce(now.scalar_subquery(), formerly.scalar_subquery())
    return DeviceProfile.id == found


def bears_one_of(names: Sequence[str]) -> ColumnElement[bool]:
    """As ``bears``, of several."""
    is_anothers = exists().where(_OTHER.name == DeviceProfileName.name)
    formerly = select(DeviceProfileName.device_profile_id).where(
        DeviceProfileName.name.in_(names), ~is_anothers
    )
    return or_(DeviceProfile.name.in_(names), DeviceProfile.id.in_(formerly))


def insertion(row: dict[str, Any]) -> Insert:
    """Of a profile, unless its name was another's: then it inserts nothing.

    :param row: by column, values of its type
    """
    table = cast(Table, DeviceProfile.__table__)
    values = [literal(row[name], table.c[name].type) for name in row]
    # MariaDB has no WHERE without a FROM.
    once = select(literal(1).label('once')).subquery()
    taken = exists().where(DeviceProfileName.name == row['name'])
    return insert(DeviceProfile).from_select(
        list(row), select(*values).select_from(once).where(~taken)
    )


def rename(session: Session, profile_id: int, former: str, name: str) -> None:
    """Keep the former name and free the new one, if it was a former name of the same.

    :raises DeviceProfileExists: the new name was another's
    """
    of_name = DeviceProfileName.name == name
    owner = session.scalar(select(DeviceProfileName.device_profile_id).where(of_name))
    if owner not in (None, profile_id):
        raise DeviceProfileExists(name=name)
    if owner is not None:
        change(session, delete_rows(DeviceProfileName).where(of_name))
    kept = {'name': former, 'device_profile_id': profile_id}
    try:
        session.execute(insert(DeviceProfileName).values(**kept))
    except DBDuplicateEntry:
        raise DeviceProfileExists(name=former) from None
