# SPDX-License-Identifier: Apache-2.0
"""Servers that gave their accelerators back, and may come for new ones.

To shelve a server, and to evacuate one, Nova deletes its requests; to bring it back it
creates new ones by the name of the profile, exactly as for a server that is new. Only
the bind names the server. So what a disabled profile makes is for the servers that are
remembered here alone: a service may create it while there are any, and the bind looks
whether the server is one of them.

A server that was deleted looks the same to us; an audit that asks Nova forgets it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Row, delete, select
from sqlalchemy.orm import Session

from cyborg_lite.db.change import change
from cyborg_lite.db.tables import FormerServer as Former
from cyborg_lite.db.tables import now
from cyborg_lite.db.upsert import Upsert
from cyborg_lite.exceptions import DeviceProfileDisabled
from cyborg_lite.model.arqs import HAS_DEVICE

_REMEMBER: Final = Upsert(
    Former, [Former.instance_uuid, Former.device_profile_id], ['left_at']
)


def remember(
    session: Session, instance: str, arqs: Sequence[Row[*tuple[Any, ...]]]
) -> None:
    """The server is about to lose these requests; one statement for each profile.

    :param arqs: rows that have a state and the id of the profile
    """
    had = {arq.device_profile_id for arq in arqs if arq.state in HAS_DEVICE}
    for profile_id in sorted(had):
        row = {'instance_uuid': instance, 'device_profile_id': profile_id}
        _REMEMBER.run(session, {**row, 'left_at': now()})


def any_of(session: Session, profile_id: int) -> bool:
    """Whether a server that had the profile may come back."""
    of_it = select(Former.id).where(Former.device_profile_id == profile_id).limit(1)
    return session.scalar(of_it) is not None


def check(
    session: Session, instance: str, arqs: Sequence[Row[*tuple[object, ...]]]
) -> None:
    """:param arqs: rows that have ``comes_back`` and the id and name of the profile
    :raises DeviceProfileDisabled: one is for servers that come back, and this is new
    """
    wanted = {
        one.device_profile_id: one.device_profile_name for one in arqs if one.comes_back
    }
    if not wanted:
        return
    mine = select(Former.device_profile_id).where(Former.instance_uuid == instance)
    new_to = wanted.keys() - set(session.scalars(mine))
    if new_to:
        raise DeviceProfileDisabled(name=wanted[min(new_to)])


@dataclass(frozen=True, slots=True)
class Memory:
    """One server of one profile."""

    id: int
    instance_uuid: str


def memories(
    session: Session, before: datetime, after_id: int, limit: int
) -> tuple[Memory, ...]:
    """A page of those that left before a moment."""
    wanted = select(Former.id, Former.instance_uuid).where(
        Former.id > after_id, Former.left_at < before
    )
    rows = session.execute(wanted.order_by(Former.id).limit(limit))
    return tuple(Memory(row.id, row.instance_uuid) for row in rows)


def forget(session: Session, ids: Sequence[int]) -> None:
    """They will not come back."""
    change(session, delete(Former).where(Former.id.in_(ids)))
