# SPDX-License-Identifier: Apache-2.0
"""The data migration of the next release: each device gets a label."""

from typing import Final

import sqlalchemy as sa
from sqlalchemy.orm import Session

NAME: Final = 'labels of devices'

_DEVICES: Final = sa.table('devices', *map(sa.column, ('id', 'uuid', 'label')))
_WITHOUT_LABEL: Final = sa.select(_DEVICES.c.id).where(_DEVICES.c.label.is_(None))


def fill_labels(session: Session, limit: int) -> int:
    """Store the uuid of devices without a label as their label."""
    ids = session.scalars(_WITHOUT_LABEL.limit(limit)).all()
    statement = sa.update(_DEVICES).where(_DEVICES.c.id.in_(ids))
    session.execute(statement.values(label=_DEVICES.c.uuid))
    return len(ids)


def has_unlabelled(session: Session) -> bool:
    """Return True if a device has no label."""
    return session.execute(_WITHOUT_LABEL.limit(1)).first() is not None


def list_labels(session: Session) -> list[str | None]:
    """Return the labels of all devices."""
    return list(session.scalars(sa.select(_DEVICES.c.label).order_by(_DEVICES.c.id)))
