# SPDX-License-Identifier: Apache-2.0
"""Reads what a recovery compares, and writes its steps, each in one transaction.

Under the locks of its ARQs and handles, a step writes nothing if any of them has
changed since it was planned.
"""

from collections.abc import Collection, Mapping
from itertools import zip_longest
from typing import Any, Final

from sqlalchemy import insert, or_, select, update
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import occupied_handles, release
from cyborg_lite.db.arqs.history import record_step
from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.clock import read_now_ms, read_time_before
from cyborg_lite.db.core.query import as_strings
from cyborg_lite.db.core.records import From, Record
from cyborg_lite.db.core.tables import (
    Arq,
    AttachHandle,
    Deployable,
    Device,
    DeviceProfile,
)
from cyborg_lite.db.jobs import outbox, queue
from cyborg_lite.db.profiles.profiles import has_name
from cyborg_lite.model.arqs.arqs import Actor, State
from cyborg_lite.model.arqs.instance_recovery import (
    ProfileOptions,
    RebuiltArq,
    RecoveryAction,
    RecoveryStep,
    StoredArq,
    StoredUnit,
)
from cyborg_lite.model.devices.cleaning import (
    CleanState,
    state_after_use,
)
from cyborg_lite.model.notifications import CREATED
from cyborg_lite.model.providers.providers import valid_symbol

RECOVERED: Final = 'Recovered'
"""Step of an ARQ that a recovery has written."""

_GENERATION: Final = 1  # of a bind; the first one of an ARQ
_UNIT: Final = Record(
    StoredUnit,
    AttachHandle,
    rp_uuid=Deployable.rp_uuid,
    deployable_name=Deployable.name,
    resource_class=From(
        lambda name: valid_symbol(name or ''), Deployable.resource_class
    ),
    traits=From(lambda names: tuple(map(valid_symbol, names)), Deployable.traits),
    instance_uuid=Arq.instance_uuid,
)
_UNITS: Final = (
    _UNIT.select()
    .select_from(AttachHandle)
    .join(Deployable, AttachHandle.deployable_id == Deployable.id)
    .join(Device, Deployable.device_id == Device.id)
    .outerjoin(Arq, AttachHandle.arq_uuid == Arq.uuid)
    .where(Deployable.rp_uuid.is_not(None))
    .order_by(AttachHandle.id)
)
_ARQ: Final = Record(StoredArq, Arq)


def list_units(session: Session, host: str) -> tuple[StoredUnit, ...]:
    """Return the units of a host that can be scheduled."""
    return _UNIT.list(session, _UNITS.where(Device.hostname == host))


def list_arqs(
    session: Session, instances: Collection[str], uuids: Collection[str]
) -> tuple[StoredArq, ...]:
    """Return the ARQs of instances, and those with the uuids."""
    is_listed = or_(Arq.instance_uuid.in_(instances), Arq.uuid.in_(uuids))
    return _ARQ.list(session, _ARQ.select().where(is_listed).order_by(Arq.id))


def list_profiles(
    session: Session, names: Collection[str]
) -> Mapping[str, ProfileOptions]:
    """Return the profiles with the current or former names, by that name."""
    profiles = {name: _find_profile(session, name) for name in sorted(names)}
    return {name: profile for name, profile in profiles.items() if profile is not None}


def _find_profile(session: Session, name: str) -> ProfileOptions | None:
    row = session.execute(
        select(
            DeviceProfile.id,
            DeviceProfile.name,
            DeviceProfile.groups,
            DeviceProfile.alternatives,
            DeviceProfile.former_groups,
        ).where(has_name(name))
    ).one_or_none()
    if row is None:
        return None
    lists = zip_longest(row.groups, row.alternatives or (), fillvalue=())
    options = [(group, *further) for group, further in lists]
    former = row.former_groups or ()
    if len(former) == len(options):
        options = [(*o, f) for o, f in zip(options, former, strict=True)]
    return ProfileOptions(
        row.id, row.name, tuple(tuple(map(as_strings, item)) for item in options)
    )


def apply_step(session: Session, step: RecoveryStep) -> bool:
    """Write a step; return False if an ARQ or a unit has changed."""
    if not step.is_change or not _lock_unchanged(session, step):
        return False
    if step.action is RecoveryAction.REBUILD:
        _rebuild(session, step)
    elif step.action is RecoveryAction.FREE:
        uuids = [unit.uuid for unit in step.units]
        occupied_handles.vacate(session, step.hostname, uuids)
    elif step.action is RecoveryAction.CLEAN:
        _clean(session, step)
    else:
        values = {'clean_state': CleanState.OCCUPIED, 'clean_reason': step.reason}
        change(session, update(AttachHandle).where(_is_of(step)).values(**values))
    queue.add_job(session, queue.placement_sync_job(step.hostname))
    return True


def _clean(session: Session, step: RecoveryStep) -> None:
    """Withhold units as after a use, until they are clean."""
    for unit in step.units:
        state = state_after_use(unit.cleaning)
        of_unit = update(AttachHandle).where(AttachHandle.uuid == unit.uuid)
        change(session, of_unit.values(clean_state=state, clean_reason=step.reason))
        if state is CleanState.DIRTY:
            job = queue.clean_job(unit.uuid, step.hostname)
            queue.add_job(session, job)


# Any: SQL of a condition.
def _is_of(step: RecoveryStep) -> Any:
    return AttachHandle.uuid.in_([unit.uuid for unit in step.units])


def _lock_unchanged(session: Session, step: RecoveryStep) -> bool:
    """Lock the ARQs, then the units; return False if any has changed."""
    arq_uuids = [arq.uuid for arq in step.arqs]
    affected = or_(
        Arq.uuid.in_([*arq_uuids, *step.outdated]),
        Arq.instance_uuid == (step.instance_uuid if step.arqs else None),
    )
    locked = select(Arq.uuid).where(affected).order_by(Arq.id).with_for_update()
    if set(session.scalars(locked)) - set(step.outdated):
        return False
    units = select(
        AttachHandle.uuid,
        AttachHandle.arq_uuid,
        AttachHandle.generation,
        AttachHandle.clean_state,
    )
    rows = session.execute(units.where(_is_of(step)).with_for_update())
    return {tuple(row) for row in rows} == {
        (unit.uuid, unit.arq_uuid, unit.generation, unit.clean_state)
        for unit in step.units
    }


def _rebuild(session: Session, step: RecoveryStep) -> None:
    """Write the ARQs of an instance in place of the outdated ones.

    The units that both have stay in use. All other units of outdated ARQs are released
    and cleaned as by any deletion.
    """
    change(session, update(AttachHandle).where(_is_of(step)).values(arq_uuid=None))
    for uuid in step.outdated:
        release.delete_abandoned_arq(session, uuid, None)
    change(session, insert(Arq), _build_rows(session, step))
    for arq in step.arqs:
        if arq.unit is not None:
            _give_unit(session, arq, arq.unit)
    uuids = [arq.uuid for arq in step.arqs]
    outbox.add_arqs(session, Arq.uuid.in_(uuids), CREATED)
    record_step(session, uuids, RECOVERED, Actor.CONDUCTOR)
    record_step(session, uuids, State.BOUND, Actor.CONDUCTOR)


# Any: columns of any types.
def _build_rows(session: Session, step: RecoveryStep) -> list[dict[str, Any]]:
    """Return the columns of bound ARQs. The use of their units begins now."""
    profile = step.profile
    if profile is None:
        return []  # only a step that rebuilds has ARQs
    common = {
        'state': State.BOUND,
        'device_profile_id': profile.id,
        'device_profile_name': profile.name,
        'project_id': step.project_id,
        'hostname': step.hostname,
        'instance_uuid': step.instance_uuid,
        'generation': _GENERATION,
        'bound_at': read_now_ms(session),
        'created_at': read_time_before(session, 0),
    }
    return [
        {
            **common,
            'uuid': arq.uuid,
            'device_profile_group_id': arq.group_id,
            'device_profile_group': profile.groups[arq.group_id][arq.alternative],
            'alternative': arq.alternative,
            'alternatives': [dict(keys) for keys in profile.groups[arq.group_id]]
            if len(profile.groups[arq.group_id]) > 1
            else None,
            'resource_class': arq.resource_class,
            'device_rp_uuid': arq.rp_uuid,
            'instance_slot': slot,
        }
        for slot, arq in enumerate(step.arqs)
    ]


def _give_unit(session: Session, arq: RebuiltArq, unit: StoredUnit) -> None:
    """Give a unit to an ARQ, with the uuid and the generation that its host knows."""
    handle = arq.handle
    values = {
        'uuid': handle.uuid if handle else unit.uuid,
        'generation': max(unit.generation, handle.generation if handle else 0),
        'arq_uuid': arq.uuid,
        'bind_generation': _GENERATION,
        'preparing': False,
        'clean_state': CleanState.CLEAN,
        'clean_reason': '',
    }
    of_unit = update(AttachHandle).where(AttachHandle.uuid == unit.uuid)
    change(session, of_unit.values(**values))
