# SPDX-License-Identifier: Apache-2.0
"""Accelerator requests: making and reading them. See binding.py and release.py."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import (
    ColumnElement,
    Select,
    String,
    and_,
    bindparam,
    case,
    func,
    insert,
    or_,
    select,
    true,
)
from sqlalchemy.orm import Session

from cyborg_lite.db import profile_names, returning
from cyborg_lite.db.change import change
from cyborg_lite.db.profile_access import visible_to
from cyborg_lite.db.query import Collection, page
from cyborg_lite.db.reading import Rows, filled, readable, texts
from cyborg_lite.db.services import agent_of
from cyborg_lite.db.tables import Arq as Row
from cyborg_lite.db.tables import (
    ArqEvent,
    AttachHandle,
    Deployable,
    Device,
    DeviceProfile,
    Service,
    now,
)
from cyborg_lite.exceptions import (
    DeviceProfileDisabled,
    DeviceProfileNotFound,
    EmptyDeviceProfile,
)
from cyborg_lite.model import device_profiles
from cyborg_lite.model.arqs import STORED, WITH_HANDLE, Arq, Scope, State
from cyborg_lite.model.image_wishes import added
from cyborg_lite.model.inventory import Health
from cyborg_lite.model.queries import Query
from cyborg_lite.model.services import ServiceState

# Of a request that is bound to what its host must keep in order, and the host is
# silent, nobody knows whether it is still so.
_STATE: Final[ColumnElement[str]] = case(
    (
        and_(
            Row.state == State.BOUND,
            AttachHandle.needs_host.is_(True),
            Service.state == ServiceState.DOWN,
        ),
        State.UNKNOWN,
    ),
    else_=Row.state,
)

# A request begins in the one state that no row of its history tells.
_TIMED: Final = tuple(sorted(STORED - {State.INITIAL}))
# Looked up by the index for each row that is shown. A join would multiply the rows, and
# a page would not be one any more.
_LAST_TIMES: Final = tuple(
    select(func.max(ArqEvent.at))
    .where(ArqEvent.arq_uuid == Row.uuid, ArqEvent.step == state)
    .correlate(Row)
    .scalar_subquery()
    for state in _TIMED
)

# The host of the request is that of the device: Nova names the one whose provider it
# has chosen. It spares two joins.
_WITH_HANDLES: Final[Select[*tuple[Any, ...]]] = (
    select(Row, AttachHandle, _STATE)
    .outerjoin(AttachHandle, AttachHandle.arq_uuid == Row.uuid)
    .outerjoin(Service, agent_of(Row.hostname))
)
_WITH_DETAILS: Final = (
    _WITH_HANDLES.outerjoin(Deployable, Deployable.id == AttachHandle.deployable_id)
    .outerjoin(Device, Device.id == Deployable.device_id)
    .add_columns(
        Deployable.uuid,
        Device.uuid,
        Device.health,
        Device.health_reason,
        *_LAST_TIMES,
    )
)

# Who has such a device cannot work with it, and is told for as long as it is so.
_ILL: Final = frozenset({Health.FAILED, Health.GONE})

_PROFILE: Final = select(
    DeviceProfile.id, DeviceProfile.name, DeviceProfile.groups, DeviceProfile.enabled
).where(profile_names.bears(bindparam('name', type_=String)))
_VISIBLE_PROFILE: Final = _PROFILE.where(visible_to(bindparam('viewer', type_=String)))
_CREATE: Final = insert(Row)

_ARQS: Final = Collection(
    Row,
    filters={
        'uuid': Row.uuid,
        'instance_uuid': Row.instance_uuid,
        'state': _STATE,
        'hostname': Row.hostname,
        'device_rp_uuid': Row.device_rp_uuid,
        'device_profile_name': Row.device_profile_name,
        'project_id': Row.project_id,
    },
    sorts={
        'uuid': Row.uuid,
        'state': Row.state,
        'created_at': Row.created_at,
        'updated_at': Row.updated_at,
        'hostname': Row.hostname,
        'instance_uuid': Row.instance_uuid,
        'device_profile_name': Row.device_profile_name,
    },
)


def create(  # noqa: PLR0913  # each is a fact of the call
    session: Session,
    profile_name: str,
    project_id: str | None,
    viewer: str | None = None,
    *,
    of_service: bool = False,
    wishes: Mapping[str, str] | None = None,
) -> tuple[Arq, ...]:
    """One request for each accelerator that the profile asks for, in its order.

    :param profile_name: that it has, or that it had
    :param viewer: the project that must see the profile; None sees all
    :param of_service: whether a service asks, which may be bringing a server back
    :param wishes: what the image of the server asks for beyond the profile
    :raises DeviceProfileNotFound: no such profile
    :raises DeviceProfileDisabled: it makes no more requests
    :raises EmptyDeviceProfile: it asks for nothing
    """
    wanted = _PROFILE if viewer is None else _VISIBLE_PROFILE
    named = {'name': profile_name, 'viewer': viewer}
    profile = session.execute(wanted, named).one_or_none()
    if profile is None:
        raise DeviceProfileNotFound(name=profile_name)
    # What a disabled profile makes may only be bound to a server that had it.
    comes_back = not profile.enabled
    if comes_back and not (of_service and returning.any_of(session, profile.id)):
        raise DeviceProfileDisabled(name=profile_name)
    moment = now()
    rows = [
        _new(profile.name, index, added(group, wishes or {}), project_id, moment)
        for index, group in enumerate(profile.groups)
        for _ in range(device_profiles.arq_count(group))
    ]
    if not rows:
        raise EmptyDeviceProfile(name=profile_name)
    kept = {'device_profile_id': profile.id, 'comes_back': comes_back}
    change(session, _CREATE, [{**row, **kept} for row in rows])
    since = {State.INITIAL.value: moment}
    return tuple(Arq(**row, state_times=since) for row in rows)


def _new(
    profile_name: str,
    group_id: int,
    group: dict[str, str],
    project_id: str | None,
    moment: datetime,
) -> dict[str, Any]:
    return {
        'uuid': str(uuid4()),
        'state': State.INITIAL,
        'device_profile_name': profile_name,
        'device_profile_group_id': group_id,
        # A copy: what becomes of the profile later does not change the request.
        'device_profile_group': group,
        'project_id': project_id,
        'created_at': moment,
    }


def listed(session: Session, query: Query, scope: Scope) -> tuple[Arq, ...]:
    """Those that fit, with their handles, in one SELECT."""
    chosen, make = (
        (_WITH_DETAILS, _detailed) if query.detailed else (_WITH_HANDLES, _arq)
    )
    wanted = chosen.where(within(scope))

    def read(part: Query) -> tuple[Rows, Iterable[Arq]]:
        rows = page(session, wanted, part, _ARQS)
        return rows, readable(rows, make)

    return filled(query, read)


# Any: the columns that ``_WITH_DETAILS`` adds, in their order.
def _detailed(row: Row, handle: AttachHandle | None, state: str, *details: Any) -> Arq:
    deployable, device, health, reason, *times = details
    found = _arq(row, handle, state)
    ill = found.attach_handle_uuid is not None and health in _ILL
    trouble = f'Its device is {health}: {reason}' if ill else None
    return replace(
        found,
        status_reason=found.status_reason or trouble,
        deployable_uuid=deployable,
        device_uuid=device,
        state_times=_times(row.created_at, times),
    )


def within(scope: Scope) -> ColumnElement[bool]:
    """The rows that ``scope.covers``."""
    if scope.project_id is None:
        return true()
    own = Row.project_id == scope.project_id
    return or_(own, Row.instance_uuid.is_not(None)) if scope.of_instances else own


def _times(created: datetime, times: Sequence[datetime | None]) -> dict[str, datetime]:
    come_to = zip(_TIMED, times, strict=True)
    later = {state.value: at for state, at in come_to if at is not None}
    return {State.INITIAL.value: created, **later}


def _arq(row: Row, handle: AttachHandle | None, word: str) -> Arq:
    state = State(word)
    needs_host = handle is not None and handle.needs_host
    # A handle is theirs to see only while it is ready: not while it is prepared, and
    # not while it is cleaned after a release.
    if handle is not None and state not in WITH_HANDLE:
        handle = None
    return Arq(
        uuid=row.uuid,
        state=state,
        device_profile_name=row.device_profile_name,
        device_profile_group_id=row.device_profile_group_id,
        device_profile_group=texts(row.device_profile_group),
        created_at=row.created_at,
        updated_at=row.updated_at,
        project_id=row.project_id,
        hostname=row.hostname,
        device_rp_uuid=row.device_rp_uuid,
        instance_uuid=row.instance_uuid,
        status_reason=row.status_reason,
        attach_handle_uuid=handle.uuid if handle else None,
        attach_handle_type=handle.type if handle else None,
        attach_handle_info=texts(handle.info) if handle else {},
        needs_host=needs_host,
    )
