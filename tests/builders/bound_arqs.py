# SPDX-License-Identifier: Apache-2.0
"""Bound ARQs in the database."""

from uuid import uuid4

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import history
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, DeviceProfile, now
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.arqs.arqs import Scope, Step
from tests.builders.bind_jobs import accept_bind, claim_for_bind, complete_bind
from tests.builders.rows import PROJECT, add_arqs, add_card, bindings

_BATCH = 5_000


def create_bound_arqs(
    database: Database, number: int, *, needs_host: bool = True
) -> list[str]:
    """Create bound ARQs of one instance on a card of their own; no job remains."""
    uuids, _ = create_bound_instance(database, number, needs_host=needs_host)
    return uuids


def create_bound_instance(
    database: Database, number: int, *, needs_host: bool = False
) -> tuple[list[str], str]:
    """Create bound ARQs of one new instance; return their uuids and its uuid."""
    rp_uuid = add_card(database, number, needs_host=needs_host)
    uuids = add_arqs(database, number)
    return uuids, bind_arqs(database, uuids, rp_uuid)


def bind_arqs(
    database: Database, uuids: list[str], rp_uuid: str, instance: str = ''
) -> str:
    """Bind ARQs to an instance, by default a new one, and return its uuid.

    No job remains.
    """
    instance = instance or str(uuid4())
    job = accept_bind(database, bindings(uuids, rp_uuid, instance))
    claimed = claim_for_bind(database, job, uuids)
    following = claimed.job
    if claimed.handles:
        following = complete_bind(database, following, uuids)
    database.write(queue.finish_job, following)
    return instance


def read_history(database: Database, uuid: str) -> tuple[Step, ...]:
    """Return the steps of an ARQ, the oldest first."""
    return database.read(history.list_steps, uuid, Scope(project_id=None))[::-1]


def add_bound_arqs(session: Session, profile: str, number: int) -> None:
    """Add bound ARQs of a profile, each of another instance."""
    profile_id = session.scalar(
        select(DeviceProfile.id).where(DeviceProfile.name == profile)
    )
    row = {
        'state': 'Bound',
        'device_profile_id': profile_id,
        'device_profile_name': profile,
        'device_profile_group_id': 0,
        'device_profile_group': {'resources:PGPU': '1'},
        'project_id': PROJECT,
        'hostname': 'compute-9',
        'instance_slot': 0,
        'resource_class': 'PGPU',
        'created_at': now(),
    }
    for begin in range(0, number, _BATCH):
        session.execute(
            insert(Arq),
            [
                {**row, 'uuid': str(uuid4()), 'instance_uuid': str(uuid4())}
                for _ in range(begin, min(begin + _BATCH, number))
            ],
        )
