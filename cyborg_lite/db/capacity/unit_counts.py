# SPDX-License-Identifier: Apache-2.0
"""Numbers of ARQs and daemons in the whole cloud, for metrics."""

from collections.abc import Mapping

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cyborg_lite.db.core.tables import Arq, Service


def count_arqs(session: Session) -> Mapping[str, int]:
    """Return the number of ARQs by state."""
    rows = session.execute(select(Arq.state, func.count()).group_by(Arq.state))
    return {row.state: int(row[1]) for row in rows}


def count_services(session: Session) -> Mapping[tuple[str, str], int]:
    """Return the number of daemons by binary and state."""
    keys = Service.binary, Service.state
    rows = session.execute(select(*keys, func.count()).group_by(*keys))
    return {(binary, state): number for binary, state, number in rows}
