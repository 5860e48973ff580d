# SPDX-License-Identifier: Apache-2.0
"""ARQs: create and list.

See binding.py and release.py for the state changes of ARQs, and history.py for their
steps.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, Final, cast
from uuid import uuid4

from sqlalchemy import (
    ColumnElement,
    Select,
    String,
    and_,
    bindparam,
    case,
    delete,
    false,
    func,
    insert,
    or_,
    select,
    true,
)
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change
from cyborg_lite.db.core.clock import now_utc
from cyborg_lite.db.core.query import (
    Collection,
    as_strings,
    convert_rows,
    list_page,
    name_columns,
)
from cyborg_lite.db.core.records import From, Record
from cyborg_lite.db.core.tables import Arq as Row
from cyborg_lite.db.core.tables import (
    ArqEvent,
    AttachHandle,
    Deployable,
    Device,
    DeviceProfile,
    ProfileChoice,
    ProfilePromise,
    Service,
)
from cyborg_lite.db.devices.devices import describe_loss, is_lost
from cyborg_lite.db.jobs import outbox
from cyborg_lite.db.profiles import former_servers
from cyborg_lite.db.profiles.profiles import has_name, is_visible_to
from cyborg_lite.errors.arqs import InstanceDeviceLost
from cyborg_lite.errors.profiles import (
    DeviceProfileDisabled,
    DeviceProfileNotFound,
    EmptyDeviceProfile,
)
from cyborg_lite.errors.registry import find_code
from cyborg_lite.model.arqs.arqs import (
    HANDLE_SHOWN_STATES,
    STORED_STATES,
    Arq,
    Scope,
    State,
)
from cyborg_lite.model.hosts.services import ServiceState
from cyborg_lite.model.inventory.host_report import HandleType
from cyborg_lite.model.notifications import CREATED
from cyborg_lite.model.profiles.device_profiles import Group
from cyborg_lite.model.profiles.group_keys import add_image_properties
from cyborg_lite.model.queries import SORT_KEYS, Query
from cyborg_lite.model.text import is_storable

# A bound ARQ is Unknown while its device is lost. If its handle needs the host, it is
# also Unknown while the agent is down: nothing confirms that the device is prepared.
_UNCONFIRMED: Final = and_(
    AttachHandle.needs_host.is_(True), Service.state == ServiceState.DOWN
)
_STATE: Final[ColumnElement[str]] = case(
    (and_(Row.state == State.BOUND, or_(is_lost(), _UNCONFIRMED)), State.UNKNOWN),
    else_=Row.state,
)

# States whose times are events. The time of Initial is that of the creation.
_INITIAL: Final = State.INITIAL.value
_STATES_WITH_EVENT: Final = tuple(sorted(STORED_STATES - {State.INITIAL}))
# Subqueries that use an index, for each row of the page. A join would multiply the rows
# and break the limit of the page.
_STATE_TIMES: Final = tuple(
    select(func.max(ArqEvent.at))
    .where(ArqEvent.arq_uuid == Row.uuid, ArqEvent.step == state)
    .correlate(Row)
    .scalar_subquery()
    for state in _STATES_WITH_EVENT
)


# Clients see a handle only while it can be used: neither while it is prepared, nor
# while it is cleaned after a release.
_IS_SHOWN: Final = Row.state.in_(sorted(HANDLE_SHOWN_STATES))


# Any: JSON.
def _read_info(info: Any, managed: bool | None) -> dict[str, str]:
    """Return the information that Nova reads; all values are strings."""
    texts = as_strings(info or {})
    return texts if managed is None else texts | {'managed': str(managed).lower()}


def _read_times(created_at: datetime, *times: datetime | None) -> dict[str, datetime]:
    """Return the time of the last change to each state."""
    entered = zip(_STATES_WITH_EVENT, times, strict=True)
    return {_INITIAL: created_at} | {
        state.value: at for state, at in entered if at is not None
    }


_LOSS: Final = case((_STATE == State.UNKNOWN, describe_loss()), else_='')
_COMPUTED: Final = {
    'state': _STATE,
    'device_profile_group': From(as_strings, Row.device_profile_group),
    'attach_handle_uuid': case((_IS_SHOWN, AttachHandle.uuid)),
    'attach_handle_type': case((_IS_SHOWN, AttachHandle.type)),
    'attach_handle_info': From(
        _read_info,
        case((_IS_SHOWN, AttachHandle.info)),
        case(
            (and_(_IS_SHOWN, AttachHandle.type == HandleType.PCI), AttachHandle.managed)
        ),
    ),
    'needs_host': func.coalesce(AttachHandle.needs_host, false()),
    'device_loss': _LOSS,
}
_ARQ: Final = Record(Arq, Row, **_COMPUTED)
_DETAILED_ARQ: Final = Record(
    Arq,
    Row,
    **_COMPUTED,
    status_reason=func.coalesce(Row.status_reason, func.nullif(_LOSS, '')),
    error_code=case(
        (and_(Row.status_reason.is_(None), _LOSS != ''), find_code(InstanceDeviceLost)),
        else_=Row.error_code,
    ),
    deployable_uuid=Deployable.uuid,
    device_uuid=Device.uuid,
    state_times=From(_read_times, Row.created_at, *_STATE_TIMES),
)


def _select_arqs(record: Record[Arq]) -> Select[*tuple[Any, ...]]:
    """Return a SELECT of ARQs with their handles.

    The host of an ARQ is the host of its device, because Nova sends the host whose
    provider it has chosen.
    """
    return (
        record.select()
        .outerjoin(AttachHandle, AttachHandle.arq_uuid == Row.uuid)
        .outerjoin(Deployable, Deployable.id == AttachHandle.deployable_id)
        .outerjoin(Device, Device.id == Deployable.device_id)
        .outerjoin(Service, Service.is_agent_of(Row.hostname))
    )


_WITH_HANDLES: Final = _select_arqs(_ARQ)
_WITH_DETAILS: Final = _select_arqs(_DETAILED_ARQ)
_OF_INSTANCE: Final = _WITH_HANDLES.where(
    Row.instance_uuid == bindparam('instance')
).order_by(Row.id)

_ANY_PROFILE: Final = select(
    DeviceProfile.id,
    DeviceProfile.name,
    DeviceProfile.groups,
    DeviceProfile.alternatives,
    DeviceProfile.former_groups,
    DeviceProfile.groups_changed_at,
    DeviceProfile.enabled,
    ProfileChoice.choice,
    select(func.min(ProfilePromise.id))
    .where(ProfilePromise.device_profile_id == DeviceProfile.id)
    .correlate(DeviceProfile)
    .scalar_subquery()
    .label('promise'),
    # The audit compares the age of an ARQ with the clock of the database.
    now_utc().label('current_time'),
)
_PROFILE: Final = (
    _ANY_PROFILE.select_from(DeviceProfile)
    .outerjoin(ProfileChoice, ProfileChoice.device_profile_id == DeviceProfile.id)
    .where(has_name(bindparam('name', type_=String)))
)
_VISIBLE_PROFILE: Final = _PROFILE.where(
    is_visible_to(bindparam('viewer', type_=String))
)
_CREATE: Final = insert(Row)

# Nova reads a profile, schedules the instance, and then creates its ARQs.
_SCHEDULING_TIME: Final = timedelta(seconds=300)

_ARQS: Final = Collection(
    Row,
    filters=name_columns(
        Row,
        'uuid',
        'instance_uuid',
        'hostname',
        'device_rp_uuid',
        'device_profile_name',
        'project_id',
        state=_STATE,
    ),
    sorts=name_columns(Row, *SORT_KEYS['accelerator_requests']),
)


def create_arqs(  # noqa: PLR0913  # all are keys of one call
    session: Session,
    profile_name: str,
    project_id: str | None,
    viewer: str | None = None,
    *,
    of_service: bool = False,
    image_properties: Mapping[str, str] | None = None,
) -> tuple[Arq, ...]:
    """Create one ARQ for each accelerator of a device profile, in its order.

    :param profile_name: the current name of the profile, or a former one
    :param viewer: the project that must be able to see the profile; None: any profile
    :param of_service: the caller is a service, which may restore an instance
    :param image_properties: properties of the image of the instance, added to the
        groups
    :raises DeviceProfileNotFound: the profile does not exist or is not visible
    :raises DeviceProfileDisabled: the profile is disabled, and the caller is no service
        or no former server had accelerators of the profile
    :raises EmptyDeviceProfile: the profile requires no accelerator
    """
    profile = _find_profile(session, profile_name, viewer)
    if not profile.enabled:
        may_restore = former_servers.has_former_servers(session, profile.id)
        if not (of_service and may_restore):
            raise DeviceProfileDisabled(name=profile_name)
    rows = list(_build_rows(profile, project_id, image_properties or {}))
    if not rows:
        raise EmptyDeviceProfile(name=profile_name)
    change(session, _CREATE, [row | further for row, further in rows])
    outbox.add_arqs(session, Row.uuid.in_([row['uuid'] for row, _ in rows]), CREATED)
    if profile.promise is not None:
        # Placement has the allocation that was promised. Nova does not say which.
        change(
            session, delete(ProfilePromise).where(ProfilePromise.id == profile.promise)
        )
    state_times = {State.INITIAL.value: profile.current_time.replace(tzinfo=UTC)}
    return tuple(Arq(**row, state_times=state_times) for row, _ in rows)


# Any: the row of ``_PROFILE``, and columns of several types.
def _build_rows(
    profile: Any, project_id: str | None, image_properties: Mapping[str, str]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the columns of each new ARQ that the API shows, and the others."""
    for index, (number, options, has_several) in enumerate(
        _list_groups(profile, image_properties)
    ):
        keys = options[number]
        for resource_class in Group.parse(keys).requirements.unit_classes:
            row = {
                'uuid': str(uuid4()),
                'state': State.INITIAL,
                'device_profile_name': profile.name,
                'device_profile_group_id': index,
                # A copy: later changes of the profile do not change the ARQ.
                'device_profile_group': keys,
                'alternative': number,
                'project_id': project_id,
                'created_at': profile.current_time.replace(tzinfo=UTC),
            }
            yield (
                row,
                {
                    'device_profile_id': profile.id,
                    # Then it may only be bound to an instance that had the profile.
                    'for_former_server': not profile.enabled,
                    'resource_class': resource_class,
                    'alternatives': options if has_several else None,
                },
            )


def list_profile_groups(
    session: Session, profile_name: str, viewer: str | None
) -> Sequence[Mapping[str, str]]:
    """Return the groups of a device profile with all alternatives.

    :param viewer: the project that must be able to see the profile; None: any profile
    :raises DeviceProfileNotFound: the profile does not exist or is not visible
    """
    profile = _find_profile(session, profile_name, viewer)
    return *profile.groups, *chain.from_iterable(profile.alternatives or ())


# Any: the row of ``_PROFILE``.
def _list_groups(
    profile: Any, image_properties: Mapping[str, str]
) -> Iterator[tuple[int, list[dict[str, str]], bool]]:
    """Yield for each group the index of the last choice, and the alternatives.

    The former groups of a profile that was edited just now count as last alternatives.
    The last element is False if the only alternative is the group itself.
    """
    choice, former = profile.choice or (), _list_former_groups(profile)
    for index, group in enumerate(profile.groups):
        alternatives = profile.alternatives[index] if profile.alternatives else ()
        options = [
            add_image_properties(keys, image_properties)
            for keys in (group, *alternatives, *(former or ())[index : index + 1])
        ]
        number = choice[index] if index < len(choice) else 0
        if number >= len(options):
            number = 0  # the profile has changed since
        yield number, options, bool(alternatives) or former is not None


# Any: the row of ``_PROFILE``.
def _list_former_groups(profile: Any) -> Sequence[dict[str, str]] | None:
    """Return the groups by which Nova may have scheduled before the last edit.

    :returns: empty: they need other numbers of ARQs; None: the last edit is not recent
    """
    current_time = profile.current_time.replace(tzinfo=UTC)
    changed_at = profile.groups_changed_at
    # The clock of the database may have been set back.
    if changed_at is None or abs(current_time - changed_at) > _SCHEDULING_TIME:
        return None
    if _count_arqs(profile.former_groups) == _count_arqs(profile.groups):
        return cast(list[dict[str, str]], profile.former_groups)
    return []


def _count_arqs(groups: Sequence[Mapping[str, str]]) -> list[int]:
    return [Group.parse(group).requirements.arq_count for group in groups]


def _find_profile(session: Session, name: str, viewer: str | None) -> Any:
    """Return id, name, groups and state of a profile; Any: a row of SQLAlchemy."""
    statement = _PROFILE if viewer is None else _VISIBLE_PROFILE
    parameters = {'name': name, 'viewer': viewer}
    profile = session.connection().execute(statement, parameters).one_or_none()
    if profile is None:
        raise DeviceProfileNotFound(name=name)
    return profile


def list_arqs(session: Session, query: Query, scope: Scope) -> tuple[Arq, ...]:
    """Return the ARQs that match the query, with their handles, in one SELECT."""
    instances = query.filters.get('instance_uuid', ())
    is_only_filter = query == Query(filters={'instance_uuid': instances})
    if len(instances) == 1 and is_only_filter and scope.project_id is None:
        # A row that cannot be read is skipped below. The statement is built once.
        with suppress(ValueError, TypeError):
            if is_storable(instances[0]):
                parameters = {'instance': instances[0]}
                rows = session.connection().execute(_OF_INSTANCE, parameters).all()
                return tuple(convert_rows(rows, Row, _ARQ.read))
    chosen, record = (
        (_WITH_DETAILS, _DETAILED_ARQ) if query.detailed else (_WITH_HANDLES, _ARQ)
    )
    collection = replace(_ARQS, visible=scope_filter(scope))
    return list_page(session, chosen, query, collection, record.read)


def scope_filter(
    scope: Scope, table: type[Row] | type[ArqEvent] = Row
) -> ColumnElement[bool]:
    """Return SQL that is true for the rows that ``scope.covers``."""
    if scope.project_id is None:
        return true()
    of_project = table.project_id == scope.project_id
    if scope.of_instances:
        return or_(of_project, table.instance_uuid.is_not(None))
    return of_project
