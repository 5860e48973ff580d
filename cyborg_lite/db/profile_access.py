# SPDX-License-Identifier: Apache-2.0
"""Which projects see a device profile that is not public."""

from collections.abc import Sequence

from sqlalchemy import BindParameter, ColumnElement, insert, or_, select, true
from sqlalchemy import delete as delete_rows
from sqlalchemy.orm import Session

from cyborg_lite.db.change import change
from cyborg_lite.db.tables import DeviceProfile
from cyborg_lite.db.tables import DeviceProfileAccess as Row
from cyborg_lite.exceptions import DeviceProfileNotFound


def visible_to(viewer: str | BindParameter[str] | None) -> ColumnElement[bool]:
    """True of the profiles that a project sees; None sees all."""
    if viewer is None:
        return true()
    granted = select(Row.device_profile_id).where(Row.project_id == viewer)
    return or_(DeviceProfile.is_public.is_(True), DeviceProfile.id.in_(granted))


def projects(session: Session, uuid: str, viewer: str | None) -> tuple[str, ...]:
    """Those with access, in the order in which it was granted.

    :raises DeviceProfileNotFound: no such profile, or none that the viewer sees
    """
    return _projects(session, _profile_id(session, uuid, viewer))


def grant(
    session: Session, uuid: str, granted: Sequence[str], viewer: str | None
) -> tuple[str, ...]:
    """Add to those with access, who are returned; who has it keeps it.

    :raises DeviceProfileNotFound: as above
    """
    profile_id = _profile_id(session, uuid, viewer)
    present = _projects(session, profile_id)
    added = [one for one in dict.fromkeys(granted) if one not in present]
    rows = [{'device_profile_id': profile_id, 'project_id': one} for one in added]
    if rows:
        session.execute(insert(Row), rows)
    return (*present, *added)


def revoke(
    session: Session, uuid: str, revoked: Sequence[str], viewer: str | None
) -> None:
    """Take from those with access; who has none is passed over.

    :raises DeviceProfileNotFound: as above
    """
    profile_id = _profile_id(session, uuid, viewer)
    of_them = (Row.device_profile_id == profile_id, Row.project_id.in_(revoked))
    change(session, delete_rows(Row).where(*of_them))


def _profile_id(session: Session, uuid: str, viewer: str | None) -> int:
    wanted = select(DeviceProfile.id).where(
        DeviceProfile.uuid == uuid, visible_to(viewer)
    )
    # Locked: two grants at once would both insert what neither of them finds.
    found = session.scalar(wanted.with_for_update(of=DeviceProfile))
    if found is None:
        raise DeviceProfileNotFound(name=uuid)
    return found


def _projects(session: Session, profile_id: int) -> tuple[str, ...]:
    wanted = select(Row.project_id).where(Row.device_profile_id == profile_id)
    return tuple(session.scalars(wanted.order_by(Row.id)))
