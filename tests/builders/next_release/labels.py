# SPDX-License-Identifier: Apache-2.0
"""Labels of devices, which the next release adds, and their data migration."""

from collections.abc import Iterator
from typing import Final
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.orm import Session

NAME: Final = 'labels of devices'

_DEVICES: Final = sa.table('devices', *map(sa.column, ('id', 'hostname', 'label')))
_WITHOUT_LABEL: Final = sa.select(_DEVICES.c.id).where(_DEVICES.c.label.is_(None))


def fill_labels(session: Session, limit: int) -> int:
    """Store the host of devices without a label as their label."""
    ids = session.scalars(_WITHOUT_LABEL.limit(limit)).all()
    statement = sa.update(_DEVICES).where(_DEVICES.c.id.in_(ids))
    session.execute(statement.values(label=_DEVICES.c.hostname))
    return len(ids)


def has_unlabelled(session: Session) -> bool:
    """Return True if a device has no label."""
    return session.execute(_WITHOUT_LABEL.limit(1)).first() is not None


def set_labels(session: Session, host: str, label: str) -> None:
    """Store the label of all devices of a host."""
    statement = sa.update(_DEVICES).where(_DEVICES.c.hostname == host)
    session.execute(statement.values(label=label))


def add_job(session: Session, kind: str, host: str) -> None:
    """Write a job with the columns that both releases have before and after."""
    numbers = dict.fromkeys(
        ('rerun_requested', 'attempts', 'run_after', 'lease', 'created_at'), 0
    )
    texts = {'uuid': str(uuid4()), 'kind': kind, 'state': 'waiting'}
    texts |= {'step': '', 'last_error': ''}
    values: dict[str, object] = {**numbers, **texts, 'payload': {'host': host}}
    columns: Iterator[sa.ColumnClause[object]] = (
        sa.column(name) for name in values if name != 'payload'
    )
    table = sa.table('jobs', *columns, sa.column('payload', sa.JSON))
    session.execute(sa.insert(table).values(values))


def list_labels(session: Session) -> list[str | None]:
    """Return the labels of all devices."""
    return list(session.scalars(sa.select(_DEVICES.c.label).order_by(_DEVICES.c.id)))
