# SPDX-License-Identifier: Apache-2.0
"""Groups of device profiles in former formats, and their replacement."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import ColumnElement, Text, cast, exists, or_, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.query import as_strings
from cyborg_lite.db.core.tables import Arq, DeviceProfile, now
from cyborg_lite.model.profiles.renames import FORMER_TRAIT_PARTS, list_renamed_traits

Groups = Sequence[Mapping[str, str]]


def list_groups(session: Session) -> dict[str, tuple[str, Groups]]:
    """Return name and groups of all device profiles, by uuid."""
    rows = session.execute(
        select(DeviceProfile.uuid, DeviceProfile.name, DeviceProfile.groups).order_by(
            DeviceProfile.name
        )
    )
    return {
        row.uuid: (row.name, [as_strings(group) for group in row.groups])
        for row in rows
    }


def replace_groups(session: Session, uuid: str, before: Groups, after: Groups) -> bool:
    """Replace the groups of a profile; return False if they are others now."""
    row = session.execute(
        select(DeviceProfile.groups).where(DeviceProfile.uuid == uuid).with_for_update()
    ).first()
    if row is None or [as_strings(group) for group in row.groups] != list(before):
        return False
    values = {'groups': [dict(group) for group in after], 'updated_at': now()}
    statement = update(DeviceProfile).where(DeviceProfile.uuid == uuid)
    return change(session, statement.values(**values)) == 1


def count_instances(session: Session, uuid: str, groups: Groups) -> int:
    """Return the number of instances with ARQs that were made from other groups.

    Such ARQs keep the groups of their creation.

    :param groups: groups of the profile now
    """
    rows = session.execute(
        select(Arq.instance_uuid, Arq.device_profile_group)
        .join(DeviceProfile)
        .where(DeviceProfile.uuid == uuid, Arq.instance_uuid.is_not(None))
    )
    present = list(groups)
    return len(
        {
            row.instance_uuid
            for row in rows
            if as_strings(row.device_profile_group) not in present
        }
    )


# Any: a value of SQL.
def uses_former_traits(hostname: Any) -> ColumnElement[bool]:
    """Return SQL: whether a profile or an instance of a host names a former trait.

    It costs no statement of its own.

    :param hostname: text, or a parameter of the statement
    """
    return or_(
        exists().where(_has_former_trait(DeviceProfile.groups)),
        exists().where(_has_former_trait(DeviceProfile.alternatives)),
        exists().where(
            Arq.hostname == hostname,
            Arq.instance_uuid.is_not(None),
            _has_former_trait(Arq.device_profile_group),
        ),
    )


# Any: columns of type JSON with lists or objects.
def _has_former_trait(column: Any) -> ColumnElement[bool]:
    text = cast(column, Text)
    return or_(*(text.contains(name, autoescape=True) for name in FORMER_TRAIT_PARTS))


def list_former_traits(session: Session, hostname: str) -> frozenset[str]:
    """Return renamed traits that a profile or an instance of a host still names."""
    profiles = session.execute(select(DeviceProfile.groups, DeviceProfile.alternatives))
    groups = [
        group
        for rows, alternatives in profiles
        for group in chain(rows, *(alternatives or ()))
    ]
    groups += session.scalars(
        select(Arq.device_profile_group).where(
            Arq.hostname == hostname, Arq.instance_uuid.is_not(None)
        )
    )
    return list_renamed_traits(groups)
