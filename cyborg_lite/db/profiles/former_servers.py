# SPDX-License-Identifier: Apache-2.0
"""Former servers: instances that have released the accelerators of a profile.

Nova deletes the ARQs of an instance when it shelves or evacuates the instance. To
restore the instance, Nova creates new ARQs by the name of the profile, as for a new
instance. Only the bind names the instance. So a service may create ARQs of a disabled
profile while there are former servers. The bind checks that its instance is one.

Nothing here distinguishes a deleted instance from a shelved one. The audit asks Nova
and deletes the rows of deleted instances.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import Upsert, change
from cyborg_lite.db.core.tables import FormerServer, now
from cyborg_lite.errors.profiles import DeviceProfileDisabled
from cyborg_lite.model.arqs.arqs import DEVICE_IN_USE_STATES

_UPSERT: Final = Upsert(
    FormerServer,
    [FormerServer.instance_uuid, FormerServer.device_profile_id],
    ['released_at'],
)


def record_former_server(session: Session, instance: str, arqs: Sequence[Any]) -> None:
    """Store that an instance releases ARQs; one statement for each profile.

    :param arqs: rows with a state and the id of the profile
    """
    profile_ids = {
        arq.device_profile_id for arq in arqs if arq.state in DEVICE_IN_USE_STATES
    }
    for profile_id in sorted(profile_ids):
        row = {'instance_uuid': instance, 'device_profile_id': profile_id}
        _UPSERT.run(session, {**row, 'released_at': now()})


def has_former_servers(session: Session, profile_id: int) -> bool:
    """Check whether any instance that used the profile may be restored."""
    of_profile = select(FormerServer.id).where(
        FormerServer.device_profile_id == profile_id
    )
    return session.scalar(of_profile.limit(1)) is not None


def check_former_server(session: Session, instance: str, arqs: Sequence[Any]) -> None:
    """Check that an instance may be bound to ARQs of disabled profiles.

    :param arqs: rows with ``for_former_server`` and the id and name of the profile
    :raises DeviceProfileDisabled: an ARQ is for former servers only, and the instance
        never had accelerators of its profile
    """
    required = {
        arq.device_profile_id: arq.device_profile_name
        for arq in arqs
        if arq.for_former_server
    }
    if not required:
        return
    profile_ids = select(FormerServer.device_profile_id).where(
        FormerServer.instance_uuid == instance
    )
    new_profiles = required.keys() - set(session.scalars(profile_ids))
    if new_profiles:
        raise DeviceProfileDisabled(name=required[min(new_profiles)])


def list_former_servers(
    session: Session, before: datetime, after_id: int, limit: int
) -> Mapping[int, str]:
    """Return a page of the instances that released ARQs before a time, by row id."""
    statement = select(FormerServer.id, FormerServer.instance_uuid).where(
        FormerServer.id > after_id, FormerServer.released_at < before
    )
    rows = session.execute(statement.order_by(FormerServer.id).limit(limit))
    return {row.id: row.instance_uuid for row in rows}


def delete_former_servers(session: Session, ids: Sequence[int]) -> None:
    """Delete the rows of instances that no longer exist."""
    change(session, delete(FormerServer).where(FormerServer.id.in_(ids)))
