# SPDX-License-Identifier: Apache-2.0
"""What an agent says every half minute: that it lives, since when, and some figures."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import JSON, literal, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import recovery, services
from cyborg_lite.db.change import by_row, change
from cyborg_lite.db.clock import now_utc
from cyborg_lite.db.tables import Device
from cyborg_lite.db.tables import Service as Row
from cyborg_lite.model.services import Pulse, Vitals
from cyborg_lite.model.usage import Usage, compact


def hear(
    session: Session, host: str, version: str, digest: str, vitals: Vitals
) -> bool:
    """One statement where there is no news, one more where figures have changed.

    True: we hold another inventory than the one it has, or of another boot.
    """
    lacking = services.beat_agent(session, host, version, digest, vitals.boot_id)
    if lacking:
        recovery.notice_boot(session, host, vitals.boot_id)
    _keep(session, host, vitals.figures)
    return lacking


def hear_again(session: Session, pulses: Collection[Pulse]) -> set[str]:
    """Two statements, however many they are. The hosts of which all is as they say.

    Of the others nothing is written: what they have to say is news.
    """
    theirs = services.agent_of(Row.host) & Row.host.in_([one.host for one in pulses])
    wanted = select(Row.host, Row.version, Row.digest, Row.boot_id).where(theirs)
    held = {row.host: row for row in session.execute(wanted)}
    same = {one.host for one in pulses if _agree(one, held.get(one.host))}
    if same:
        alive = update(Row).where(services.agent_of(Row.host), Row.host.in_(same))
        change(session, alive.values(heartbeat_at=now_utc()))
    return same


def _agree(said: Pulse, held: Any) -> bool:
    """Any: a row of the columns of a pulse."""
    if held is None:
        return False
    boot_id = held.boot_id if said.boot_id else ''
    return said == Pulse(held.host, held.version, held.digest, boot_id)


def _keep(session: Session, host: str, figures: Mapping[str, Usage]) -> None:
    """Of devices that the host does not have nothing is kept."""
    if not figures:
        return
    values = {address: literal(compact(u), JSON) for address, u in figures.items()}
    theirs = update(Device).where(Device.hostname == host, Device.address.in_(values))
    # The row counts as changed when the device has, not with every breath it takes.
    kept = {
        Device.figures: by_row(Device.address, values),
        Device.updated_at: Device.updated_at,
    }
    change(session, theirs.values(kept))
