# SPDX-License-Identifier: Apache-2.0
"""Access of projects to private device profiles."""

from collections.abc import Sequence

from sqlalchemy import BindParameter, ColumnElement, insert, or_, select, true
from sqlalchemy import delete as delete_rows
from sqlalchemy.orm import Session

from cyborg_lite.db.change import change
from cyborg_lite.db.tables import DeviceProfile
from cyborg_lite.db.tables import DeviceProfileAccess as Row
from cyborg_lite.exceptions import DeviceProfileNotFound


def is_visible_to(viewer: str | BindParameter[str] | None) -> ColumnElement[bool]:
    """Return SQL that is true for the profiles that a project can see.

    :param viewer: the project; None: all profiles are visible
    """
    if viewer is None:
        return true()
    granted = select(Row.device_profile_id).where(Row.project_id == viewer)
    return or_(DeviceProfile.is_public.is_(True), DeviceProfile.id.in_(granted))


def list_projects(session: Session, uuid: str, viewer: str | None) -> tuple[str, ...]:
    """Return the projects with access to a profile, in the order of the grants.

    :raises DeviceProfileNotFound: the profile does not exist or is not visible
    """
    return _list_projects(session, _lock_profile(session, uuid, viewer))


def grant_access(
    session: Session, uuid: str, projects: Sequence[str], viewer: str | None
) -> tuple[str, ...]:
    """Grant access to projects; ignore projects that already have access.

    :returns: all projects with access
    :raises DeviceProfileNotFound: the profile does not exist or is not visible
    """
    profile_id = _lock_profile(session, uuid, viewer)
    present = _list_projects(session, profile_id)
    added = [project for project in dict.fromkeys(projects) if project not in present]
    rows = [
        {'device_profile_id': profile_id, 'project_id': project} for project in added
    ]
    if rows:
        session.execute(insert(Row), rows)
    return (*present, *added)


def revoke_access(
    session: Session, uuid: str, projects: Sequence[str], viewer: str | None
) -> None:
    """Revoke access of projects; ignore projects without access.

    :raises DeviceProfileNotFound: the profile does not exist or is not visible
    """
    profile_id = _lock_profile(session, uuid, viewer)
    revoked = (Row.device_profile_id == profile_id, Row.project_id.in_(projects))
    change(session, delete_rows(Row).where(*revoked))


def _lock_profile(session: Session, uuid: str, viewer: str | None) -> int:
    """Lock a profile and return its id.

    Without the lock, two concurrent grants would insert the same row.
    """
    statement = select(DeviceProfile.id).where(
        DeviceProfile.uuid == uuid, is_visible_to(viewer)
    )
    profile_id = session.scalar(statement.with_for_update(of=DeviceProfile))
    if profile_id is None:
        raise DeviceProfileNotFound(name=uuid)
    return profile_id


def _list_projects(session: Session, profile_id: int) -> tuple[str, ...]:
    projects = select(Row.project_id).where(Row.device_profile_id == profile_id)
    return tuple(session.scalars(projects.order_by(Row.id)))
