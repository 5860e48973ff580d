# SPDX-License-Identifier: Apache-2.0
"""Rows of device profiles: their conversion, the conditions that select them, locks."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import BindParameter, ColumnElement, exists, func, or_, select, true
from sqlalchemy.orm import Session, aliased

from cyborg_lite.db.core.query import as_strings
from cyborg_lite.db.core.records import From, Record
from cyborg_lite.db.core.tables import DeviceProfile as Row
from cyborg_lite.db.core.tables import DeviceProfileAccess, DeviceProfileName
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.model.profiles.device_profiles import DeviceProfile


# Any: JSON.
def _read_groups(groups: Any) -> tuple[dict[str, str], ...]:
    return tuple(as_strings(group) for group in groups)


PROFILE: Final = Record(
    DeviceProfile,
    Row,
    groups=From(_read_groups, Row.groups),
    alternatives=From(
        lambda lists: tuple(map(_read_groups, lists or ())), Row.alternatives
    ),
)


def store_alternatives(
    alternatives: Sequence[Sequence[Mapping[str, str]]],
) -> list[list[dict[str, str]]] | None:
    """Return the column; None: no group has alternatives."""
    return [[dict(group) for group in groups] for groups in alternatives] or None


# --- conditions ---


def is_visible_to(viewer: str | BindParameter[str] | None) -> ColumnElement[bool]:
    """Return SQL that is true for the profiles that a project can see.

    :param viewer: the project; None: all profiles are visible
    """
    if viewer is None:
        return true()
    granted = select(DeviceProfileAccess.device_profile_id).where(
        DeviceProfileAccess.project_id == viewer
    )
    return or_(Row.is_public.is_(True), Row.id.in_(granted))


_NAMED: Final = aliased(Row)


def has_name(name: str | BindParameter[str]) -> ColumnElement[bool]:
    """Return SQL that is true for the profile with a current or former name.

    Both lookups use unique indexes.
    """
    current = select(_NAMED.id).where(_NAMED.name == name)
    former = select(DeviceProfileName.device_profile_id).where(
        DeviceProfileName.name == name
    )
    profile_id = func.coalesce(current.scalar_subquery(), former.scalar_subquery())
    return Row.id == profile_id


def has_any_name(
    names: Sequence[str] | BindParameter[Sequence[str]],
) -> ColumnElement[bool]:
    """Return SQL that is true for profiles with any of the current or former names."""
    is_current = exists().where(_NAMED.name == DeviceProfileName.name)
    former = select(DeviceProfileName.device_profile_id).where(
        DeviceProfileName.name.in_(names), ~is_current
    )
    return or_(Row.name.in_(names), Row.id.in_(former))


# --- locks ---


def lock_profile(
    session: Session, uuid: str, viewer: str | None
) -> tuple[int, DeviceProfile]:
    """Lock a profile; return the id of its row, and the profile.

    :raises DeviceProfileNotFound: the profile does not exist or is not visible
    """
    statement = PROFILE.select().where(Row.uuid == uuid, is_visible_to(viewer))
    row = session.execute(statement.with_for_update(of=Row)).one_or_none()
    if row is None:
        raise DeviceProfileNotFound(name=uuid)
    return row.row_id, PROFILE.read(row)
