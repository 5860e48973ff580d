# SPDX-License-Identifier: Apache-2.0
"""Limits of projects: the lock of a project, and the count of what it uses."""

from collections import Counter
from collections.abc import Callable
from typing import Final

from sqlalchemy import bindparam, case, func, select
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import Upsert
from cyborg_lite.db.core.tables import Arq, ProjectLock
from cyborg_lite.model.arqs.arqs import Arq as ArqRecord
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.arqs.project_limits import (
    ARQS,
    UNBOUND,
    ProjectLimits,
    list_resources,
    name_units,
)

_ADD: Final = Upsert(
    ProjectLock,
    (ProjectLock.project_id,),
    also={'project_id': ProjectLock.project_id},
)
_LOCK: Final = (
    select(ProjectLock.id)
    .where(ProjectLock.project_id == bindparam('project'))
    .with_for_update()
)
_COUNT: Final = (
    select(
        Arq.resource_class,
        func.count(),
        func.sum(case((Arq.state == State.INITIAL, 1), else_=0)),
    )
    .where(Arq.project_id == bindparam('project'), Arq.state != State.DELETING)
    .group_by(Arq.resource_class)
)


def add_lock(session: Session, project_id: str) -> None:
    """Add the row that ``create_arqs`` locks, in a transaction of its own.

    Concurrent inserts in the transaction of the creation would deadlock on MariaDB.
    """
    _ADD.run(session, {'project_id': project_id})


def create_arqs(
    session: Session,
    limits: ProjectLimits,
    create: Callable[[Session], tuple[ArqRecord, ...]],
) -> tuple[ArqRecord, ...]:
    """Create ARQs of a project unless it would exceed its limits.

    The lock is the first statement: MariaDB reads everything else as it was at the
    first read without a lock.

    :param create: creates the ARQs in the transaction
    :raises ProjectLimitExceeded: the project would exceed a limit; the caller rolls the
        transaction back
    """
    session.scalar(_LOCK, {'project': limits.project_id})
    created = create(session)
    names = list_resources(arq.device_profile_group for arq in created)
    limits.check(count_used(session, limits.project_id), names)
    return created


def count_used(session: Session, project_id: str) -> Counter[str]:
    """Return what a project uses, by the names of the resources in Keystone.

    ARQs that are being deleted do not count: their instance is gone.
    """
    used: Counter[str] = Counter()
    rows = session.execute(_COUNT, {'project': project_id})
    for resource_class, number, unbound in rows:
        used[ARQS] += number
        used[UNBOUND] += int(unbound)
        if resource_class:
            used[name_units(resource_class)] += number
    return used
