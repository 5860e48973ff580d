# SPDX-License-Identifier: Apache-2.0
"""Data migrations that run in batches while the daemons run.

A revision of the schema adds a column. A migration here fills it in existing rows. The
code reads rows of both kinds until ``cyborg-lite-dbsync upgrade --contract``, which is
refused while a migration has rows left. A migration is removed two releases later.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Select, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db import usages
from cyborg_lite.db.change import change, value_by_row
from cyborg_lite.db.tables import AttachHandle, Deployable, Device, Job
from cyborg_lite.model.jobs import JobType


@dataclass(frozen=True, slots=True)
class OnlineMigration:
    """A change of existing rows."""

    name: str
    # Changes at most so many rows, and returns their number.
    migrate: Callable[[Session, int], int]
    # Returns whether rows are left.
    has_rows: Callable[[Session], bool]


def _select_release_hosts() -> Select[int, str]:
    """Return a SELECT of release jobs without a host, with the host of the handle."""
    return (
        select(Job.id, Device.hostname)
        .join(AttachHandle, AttachHandle.uuid == Job.key)
        .join(Deployable, Deployable.id == AttachHandle.deployable_id)
        .join(Device, Device.id == Deployable.device_id)
        .where(Job.kind == JobType.RELEASE, Job.host.is_(None))
        .order_by(Job.id)
    )


def _fill_release_hosts(session: Session, limit: int) -> int:
    """Store the hosts of release jobs of an earlier release.

    A job without a host is not counted against the limit of jobs per host.
    """
    rows = session.execute(_select_release_hosts().limit(limit)).all()
    if not rows:
        return 0
    hosts = {row.id: row.hostname for row in rows}
    statement = update(Job).where(Job.id.in_(hosts), Job.host.is_(None))
    change(session, statement.values(host=value_by_row(Job.id, hosts)))
    # Jobs that ended meanwhile need no host.
    return len(rows)


def _has_release_hosts(session: Session) -> bool:
    return session.execute(_select_release_hosts().limit(1)).first() is not None


MIGRATIONS: Final = (
    OnlineMigration('hosts of release jobs', _fill_release_hosts, _has_release_hosts),
    OnlineMigration('use of ARQs', usages.complete_arqs, usages.has_incomplete_arqs),
)
"""All migrations, in the order in which they must run."""


def list_unfinished(session: Session) -> tuple[str, ...]:
    """Return the names of migrations that have rows left."""
    return tuple(
        migration.name for migration in MIGRATIONS if migration.has_rows(session)
    )
