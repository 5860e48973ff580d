# SPDX-License-Identifier: Apache-2.0
"""Units that an instance has released, and the progress of their cleans."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Arq, AttachHandle, Deployable, Device
from cyborg_lite.db.core.tables import Job as Row
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.providers import providers
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.devices.cleaning import (
    CleanProgress,
    CleanProgressState,
    CleanStep,
    CleanStepResult,
)
from cyborg_lite.model.inventory.host_report import CleaningPolicy
from cyborg_lite.model.jobs import Job
from cyborg_lite.model.operations import OperationKind
from tests.builders.bound_arqs import create_bound_instance
from tests.builders.rows import HOST, OWNER

_EVERYBODY = Scope(project_id=None)
_MOMENT = datetime(2026, 2, 28, 12, 0, tzinfo=UTC)
STEPS = (CleanStep('erase', 'all data', abortable=True), CleanStep('verify', 'nothing'))


@dataclass(frozen=True)
class Unit:
    """A unit as the database has it."""

    uuid: str  # of the handle
    key: str
    state: str
    reason: str
    owner: str | None  # uuid of an ARQ


def release_unit(
    database: Database,
    policy: CleaningPolicy = CleaningPolicy.AFTER_USE,
    profile_policy: str | None = None,
    *,
    missing: bool = False,
) -> str:
    """Bind the only unit of a new card, release it and return the device uuid.

    :param profile_policy: value of ``accel:cleaning``; None: the profile has no key
    :param missing: the unit leaves the host before its release
    """
    uuids, instance = create_bound_instance(database, 1)
    return database.write(
        _release, uuids[0], instance, policy, (profile_policy, missing)
    )


def _release(
    session: Session,
    arq: str,
    instance: str,
    policy: CleaningPolicy,
    details: tuple[str | None, bool],
) -> str:
    profile_policy, missing = details
    own = AttachHandle.arq_uuid == arq
    values = {'cleaning': policy, 'missing': missing}
    session.execute(update(AttachHandle).where(own).values(**values))
    device = session.scalars(
        select(Device.uuid).join(Deployable).join(AttachHandle).where(own)
    ).one()
    if profile_policy is not None:
        group = {'resources:PGPU': '1', 'accel:cleaning': profile_policy}
        changed = update(Arq).where(Arq.uuid == arq)
        session.execute(changed.values(device_profile_group=group))
    release.delete_arqs_of_instance(session, instance, _EVERYBODY)
    return device


def read_units(database: Database, device: str) -> list[Unit]:
    """Return the units of a device."""
    return database.read(_read_units, device)


def _read_units(session: Session, device: str) -> list[Unit]:
    rows = session.scalars(
        select(AttachHandle).join(Deployable).join(Device).where(Device.uuid == device)
    )
    return [
        Unit(row.uuid, row.key, row.clean_state, row.clean_reason, row.arq_uuid)
        for row in rows
    ]


def lease_clean_job(database: Database) -> Job:
    """Lease the only clean job, due or not."""
    (key,) = database.read(_list_keys)
    job = database.write(queue.lease_keyed_job, OWNER, OperationKind.CLEANING, key)
    assert job is not None
    return job


def _list_keys(session: Session) -> list[str]:
    keys = session.scalars(select(Row.key).where(Row.kind == OperationKind.CLEANING))
    return [key for key in keys if key is not None]


def count_clean_jobs(database: Database) -> int:
    """Return the number of unfinished clean jobs."""
    return len(database.read(_list_keys))


def count_reserved(database: Database) -> list[int]:
    """Return the reserved amounts in Placement of the providers of the host."""
    rows = database.read(providers.list_providers_of_host, HOST)
    return [row.reserved for row in rows]


def build_progress(
    state: CleanProgressState, *finished: str, reason: str = ''
) -> CleanProgress:
    """Return the progress of a clean with finished steps, and the running one."""
    results = [CleanStepResult(name, _MOMENT, _MOMENT, 'tool 1.0') for name in finished]
    names = [step.name for step in STEPS if step.name not in finished]
    if state is CleanProgressState.RUNNING and names:
        results.append(CleanStepResult(names[0], _MOMENT))
    if state is CleanProgressState.FAILED and names:
        results.append(CleanStepResult(names[0], _MOMENT, _MOMENT, '', reason))
    return CleanProgress(state, 'session-1', STEPS, tuple(results), reason)
