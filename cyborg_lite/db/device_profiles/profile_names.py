# SPDX-License-Identifier: Apache-2.0
"""Current and former names of device profiles, each unique among all profiles.

A profile keeps its former names, because flavors may still contain them. Two concurrent
clients can give one profile the former name of another. Then the name belongs to the
profile that has it now.
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

_NAMED: Final = aliased(DeviceProfile)


def has_name(name: str | BindParameter[str]) -> ColumnElement[bool]:
    """Return SQL that is true for the profile with a current or former name.

    Both lookups use unique indexes.
    """
    current = select(_NAMED.id).where(_NAMED.name == name)
    former = select(DeviceProfileName.device_profile_id).where(
        DeviceProfileName.name == name
    )
    profile_id = func.coalesce(current.scalar_subquery(), former.scalar_subquery())
    return DeviceProfile.id == profile_id


def has_any_name(names: Sequence[str]) -> ColumnElement[bool]:
    """Return SQL that is true for profiles with any of the current or former names."""
    is_current = exists().where(_NAMED.name == DeviceProfileName.name)
    former = select(DeviceProfileName.device_profile_id).where(
        DeviceProfileName.name.in_(names), ~is_current
    )
    return or_(DeviceProfile.name.in_(names), DeviceProfile.id.in_(former))


def insert_unless_taken(row: dict[str, Any]) -> Insert:
    """Return an INSERT of a profile that inserts nothing if its name is a former name.

    :param row: values by column
    """
    table = cast(Table, DeviceProfile.__table__)
    values = [literal(row[name], table.c[name].type) for name in row]
    # MariaDB does not accept WHERE without FROM.
    once = select(literal(1).label('once')).subquery()
    is_former = exists().where(DeviceProfileName.name == row['name'])
    return insert(DeviceProfile).from_select(
        list(row), select(*values).select_from(once).where(~is_former)
    )


def rename_profile(session: Session, profile_id: int, former: str, name: str) -> None:
    """Store the former name; free the new name if the same profile had it before.

    :raises DeviceProfileExists: the new name is a former name of another profile
    """
    same_name = DeviceProfileName.name == name
    owner = session.scalar(select(DeviceProfileName.device_profile_id).where(same_name))
    if owner not in (None, profile_id):
        raise DeviceProfileExists(name=name)
    if owner is not None:
        change(session, delete_rows(DeviceProfileName).where(same_name))
    row = {'name': former, 'device_profile_id': profile_id}
    try:
        session.execute(insert(DeviceProfileName).values(**row))
    except DBDuplicateEntry:
        raise DeviceProfileExists(name=former) from None
