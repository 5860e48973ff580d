# SPDX-License-Identifier: Apache-2.0
"""Which hosts are to be compared with Placement next."""

import math
from typing import Final

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import jobs
from cyborg_lite.db.change import change
from cyborg_lite.db.clock import ago, now_utc
from cyborg_lite.db.providers import sync_job
from cyborg_lite.db.services import AGENT
from cyborg_lite.db.tables import Device
from cyborg_lite.db.tables import Service as Row

_MOST: Final = 1000  # hosts in one transaction


def call(session: Session, interval: float, pause: float) -> int:
    """Call for the hosts whose turn it is; how many these are.

    Of all hosts such a share that each has its turn once in ``interval``, were this
    called every ``pause`` seconds: they are spread over the time, and conductors that
    do the same at once call for no host twice.
    """
    hosts = session.scalar(
        select(func.count()).select_from(Row).where(Row.binary == AGENT)
    )
    share = min(_MOST, math.ceil((hosts or 0) * pause / interval))
    late = Row.audited_at < ago(session, interval)
    due = session.execute(
        select(Row.id, Row.host)
        .where(Row.binary == AGENT, late)
        .order_by(Row.audited_at, Row.id)
        .limit(share)
    ).all()
    if not due:
        return 0
    mine = update(Row).where(Row.id.in_([row.id for row in due]), late)
    if change(session, mine.values(audited_at=now_utc())) != len(due):
        # Another conductor is at it, with at least some of the same.
        return 0
    for row in due:
        jobs.add(session, sync_job(row.host, deep=True))
    return len(due)


def call_contested(session: Session) -> int:
    """Call for the hosts that offer less than they have because of another service.

    What ends that happens elsewhere, and nobody tells us.
    """

    hosts = session.scalars(
        select(Device.hostname).where(Device.conflict != '').distinct()
    ).all()
    for host in hosts:
        jobs.add(session, sync_job(host))
    return len(hosts)
