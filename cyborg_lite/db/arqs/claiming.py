# SPDX-License-Identifier: Apache-2.0
"""Claims free handles for ARQs. Row locks keep two binds from claiming the same one."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change, values_by_row
from cyborg_lite.db.core.incarnations import IS_QUARANTINED
from cyborg_lite.db.core.tables import (
    Arq,
    AttachHandle,
    Deployable,
    Device,
    LoadedRegion,
    ProviderTraits,
    Service,
)
from cyborg_lite.db.devices import elastic_cards
from cyborg_lite.db.inventory.handles import (
    FREE,
    GENERATION_PARAMETER,
    IS_CURRENT_BIND,
    needs_cleaning,
)
from cyborg_lite.db.jobs import queue
from cyborg_lite.db.profiles import selectors
from cyborg_lite.errors.arqs import (
    AllocationTooSmall,
    BindCancelled,
    HandlesContended,
    HostMismatch,
    NoFreeHandle,
    ProviderMismatch,
    UnitsBeingCleaned,
)
from cyborg_lite.errors.daemons import DatabaseQuarantined
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.devices.cleaning import OPERATOR_STATES, CleanState
from cyborg_lite.model.hosts.services import ServiceState
from cyborg_lite.model.inventory.host_report import CLOSED_HEALTH, HandleType, Health
from cyborg_lite.model.profiles.device_profiles import Group
from cyborg_lite.model.profiles.renames import migrate_group
from cyborg_lite.model.profiles.selector_keys import find_selector
from cyborg_lite.model.profiles.selectors import matches
from cyborg_lite.model.providers.providers import valid_symbol
from cyborg_lite.model.traits import OWNER_CYBORG

# --- comparison with the deployable that Nova chose, and with the allocation ---
#
# Nova schedules by the device profile and the providers of an earlier moment. The
# profile may have been edited since, and a card may have lost a trait.


@dataclass(frozen=True, slots=True)
class Allocated:
    """The instance of a bind and its providers, as Placement knows them."""

    project_id: str | None = None  # None: an administrator has named it in the bind
    # By provider and resource class. None: an instance needs no allocation.
    amounts: Mapping[str, Mapping[str, int]] | None = None
    # Traits of the providers that may be of another service.
    traits: Mapping[str, Collection[str]] = field(default_factory=dict)


# Any: the columns of an ARQ and its deployable, as `_list_targets` reads them.
def check_deployable(row: Any, allocated: Allocated) -> None:
    """Check that the deployable of an ARQ is on its host and satisfies its group.

    :raises HostMismatch: it is a device of another host
    :raises ProviderMismatch: it has another resource class, or lacks a trait
    """
    if row.chosen_host.casefold() != row.hostname.casefold():
        raise HostMismatch(
            provider=row.device_rp_uuid, host=row.chosen_host, actual=row.hostname
        )
    group = migrate_group(row.device_profile_group).group
    requirements = Group.parse(group).requirements
    resource_class = valid_symbol(row.resource_class or '')
    if {resource_class} != set(requirements.resource_classes):
        classes = ', '.join(requirements.resource_classes)
        _refuse(row, f'its resource class is {resource_class}, not {classes}')
    traits = _list_traits(row, group, allocated)
    if missing := sorted(requirements.required - traits):
        _refuse(row, f'it lacks {", ".join(missing)}')
    if excess := sorted(requirements.forbidden & traits):
        _refuse(row, f'it has {", ".join(excess)}')


def _list_traits(
    row: Any, group: Mapping[str, str], allocated: Allocated
) -> frozenset[str]:
    """Return the traits of the deployable, and those that others have set."""
    own = {OWNER_CYBORG, *map(valid_symbol, row.traits)}
    own |= selectors.list_taints(row.health)
    selector = find_selector(group)
    if selector is not None:
        listed = selectors.list_attributes(row, row.loadable)
        if matches(selector.expression, {item.name: item for item in listed}):
            own.add(selector.trait)
    foreign = set(allocated.traits.get(row.device_rp_uuid, ()))
    return frozenset(own | foreign - set(row.published or ()))


def _refuse(row: Any, reason: str) -> None:
    raise ProviderMismatch(
        provider=row.device_rp_uuid, group=row.device_profile_group_id, reason=reason
    )


def check_amounts(
    units: Iterable[tuple[str, str]], allocated: Allocated, exact: Collection[str] = ()
) -> None:
    """Check that an instance has all units allocated that its ARQs request.

    :param units: provider and resource class of each unit
    :param exact: providers of which the ARQs must request all allocated units
    :raises AllocationTooSmall: it has fewer
    :raises NoFreeHandle: it has more on a provider of ``exact``
    """
    if allocated.amounts is None:
        return
    for (provider, name), number in sorted(Counter(units).items()):
        amount = allocated.amounts.get(provider, {}).get(name, 0)
        if number > amount:
            raise AllocationTooSmall(
                requested=number, name=name, provider=provider, allocated=amount
            )
        if number < amount and provider in exact:
            raise NoFreeHandle(
                reason=f'The ARQs request {number} of {amount} units of {name} that the'
                f' instance has allocated on resource provider {provider}. Its device '
                f'profile has changed meanwhile.'
            )


# --- claim ---

# Locked before any handle: a delete or an unbind at the same time waits, and then sees
# the claimed handles. Otherwise the claim would violate the foreign key, or the delete.
_LOCK: Final = (
    select(Arq.id)
    .where(
        Arq.uuid.in_(bindparam('uuids')),
        Arq.state == State.BIND_STARTED,
        IS_CURRENT_BIND,
    )
    .order_by(Arq.id)
    .with_for_update()
)
_TARGETS: Final = (
    select(
        Arq.uuid,
        Arq.device_rp_uuid,
        Arq.device_profile_group,
        Arq.device_profile_group_id,
        Arq.hostname.label('chosen_host'),
        Arq.alternatives,
        Deployable.id.label('deployable_id'),
        Deployable.device_id,
        Deployable.name,
        elastic_cards.PLACES,
        Deployable.num_accelerators,
        Deployable.resource_class,
        Deployable.traits,
        *selectors.ATTRIBUTES,
        Deployable.loadable,
        ProviderTraits.traits.label('published'),
        Device.hostname,
        Device.health,
        Device.health_reason,
        Device.conflict,
        Device.quarantine,
        AttachHandle.id.label('unclean'),
        Service.state.label('agent'),
        LoadedRegion.unusable_reason,
        IS_QUARANTINED.label('is_quarantined'),
    )
    .select_from(Arq)
    .outerjoin(Deployable, Deployable.rp_uuid == Arq.device_rp_uuid)
    .outerjoin(Device, Deployable.device_id == Device.id)
    .outerjoin(Service, Service.is_agent_of(Device.hostname))
    .outerjoin(AttachHandle, AttachHandle.arq_uuid == Arq.uuid)
    .outerjoin(LoadedRegion, LoadedRegion.deployable_id == Deployable.id)
    .outerjoin(ProviderTraits, ProviderTraits.rp_uuid == Deployable.rp_uuid)
    .where(Arq.uuid.in_(bindparam('uuids')))
    .order_by(Arq.id)
)
# SQLite has no row locks; its write transactions run one after the other.
_ALL_FREE: Final = (
    select(
        AttachHandle.id,
        AttachHandle.deployable_id,
        # Nova cannot attach every mdev and every unmanaged function. The bind job
        # checks them before the ARQs become Bound.
        or_(
            AttachHandle.needs_host,
            AttachHandle.type == HandleType.MDEV,
            AttachHandle.managed.is_(False),
        ),
        AttachHandle.clean_state == CleanState.NEEDS_BITSTREAM,
    )
    .where(AttachHandle.deployable_id.in_(bindparam('deployables')), FREE)
    .order_by(AttachHandle.id)
    .with_for_update(skip_locked=True)
)
_FREE_LIMITED: Final = _ALL_FREE.limit(bindparam('number'))
_CLAIM: Final = (
    update(AttachHandle)
    .where(AttachHandle.id.in_(bindparam('ids')), FREE)
    .values(preparing=AttachHandle.needs_host, generation=AttachHandle.generation + 1)
)


def claim_handles(
    session: Session,
    arq_uuids: Sequence[str],
    generation: int,
    allocated: Allocated,
) -> bool:
    """Claim one free attach handle per ARQ, of a deployable that satisfies its group.

    If one handle serves two ARQs of a group, the second ARQ gets none.

    :param arq_uuids: ARQs in state BindStarted, all of one instance
    :param generation: of the bind; 0: not compared
    :returns: True if the agent must prepare at least one of the handles, or if the
        bind job must check it
    :raises BindCancelled: an ARQ is not being bound any more, or by a later bind
    :raises NoFreeHandle: the provider is unknown, gone, exhausted or not allocated, or
        does not match the ARQ
    :raises HandlesContended: enough handles exist, but other transactions have locked
        them, or hosts are cleaning them
    :raises DatabaseQuarantined: instances may use handles that seem to be free
    """
    parameters = {'uuids': arq_uuids, GENERATION_PARAMETER: generation}
    locked = session.connection().scalars(_LOCK, parameters).all()
    if len(locked) < len(arq_uuids):
        raise BindCancelled()
    targets = _list_targets(session, arq_uuids, allocated)
    with_handle = _targets_with_handle(targets)
    check_amounts(
        [(item.rp_uuid, item.resource_class) for item in with_handle],
        allocated,
        [item.rp_uuid for item in targets if item.must_use_all],
    )
    # Before the handles: two claims on one card must not wait for one another.
    elastic_cards.lock_cards(session, with_handle)
    handles = _lock_free_handles(session, with_handle)
    places = elastic_cards.choose_places(session, with_handle)
    _claim(session, handles, places, generation)
    # Free handles of a host that is down are reserved, and these are not free any more.
    # A unit of an elastic card leaves less room for units of other sizes.
    queue.sync_hosts(
        session,
        {
            target.hostname
            for target in targets
            if target.is_host_down or target.places is not None
        },
    )
    has_steps = any(handle.needs_steps for handle in handles.values())
    return has_steps or any(target.loads_bitstream for target in targets)


def check_room(
    session: Session, arq_uuids: Sequence[str], usage: Mapping[str, int]
) -> None:
    """Check that the units which other consumers use leave enough for ARQs.

    :param usage: units that other consumers use, by uuid of the provider
    :raises NoFreeHandle: they do not
    """
    targets = _targets_with_handle(_list_targets(session, arq_uuids))
    needed = Counter(target.rp_uuid for target in targets)
    for target in targets:
        provider = target.rp_uuid
        used = usage.get(provider, 0)
        if used + needed[provider] > target.capacity:
            reason = (
                f'Other consumers have allocated {used} of the {target.capacity} units '
                f'of resource provider {provider}.'
            )
            raise NoFreeHandle(reason=reason)


@dataclass(frozen=True, slots=True)
class _Target(elastic_cards.ElasticTarget):
    """An ARQ that is being bound, and the deployable that Nova has chosen for it."""

    resource_class: str
    deployable_id: int
    capacity: int
    hostname: str
    is_host_down: bool  # the agent of the host is down
    group_id: int
    group: Mapping[str, str]
    must_use_all: bool  # that the instance has allocated

    @property
    def loads_bitstream(self) -> bool:
        """Return True if the host must load a bitstream for the ARQ."""
        return Group.parse(self.group).requests_bitstream


@dataclass(frozen=True, slots=True)
class _LockedHandle:
    """A free handle whose row this transaction has locked."""

    id: int
    deployable_id: int
    needs_steps: bool  # before its ARQ becomes Bound
    needs_bitstream: bool  # its region contains the logic of an earlier instance


def _list_targets(
    session: Session, uuids: Sequence[str], allocated: Allocated | None = None
) -> tuple[_Target, ...]:
    """Return the targets of ARQs.

    :param allocated: None: do not compare ARQs with their deployables
    """
    rows = session.connection().execute(_TARGETS, {'uuids': uuids}).all()
    if any(row.is_quarantined for row in rows):
        raise DatabaseQuarantined()
    unclean = [row.device_rp_uuid for row in rows if row.unclean is not None]
    if unclean:
        # The ARQ was bound before, and the host is still cleaning its former handle.
        raise UnitsBeingCleaned(number=len(unclean), provider=unclean[0])
    targets = tuple(_target(row) for row in rows)
    if allocated is not None:
        for row in rows:
            check_deployable(row, allocated)
    return targets


# Any: the columns of _TARGETS.
def _target(row: Any) -> _Target:
    device = f'The device of {row.name}'
    unknown = f'No device of Cyborg is resource provider {row.device_rp_uuid}.'
    obstacles = (
        (row.deployable_id is None, unknown),
        (row.health == Health.GONE, f'{device} is gone.'),
        (
            row.health in CLOSED_HEALTH,
            f'{device} is {row.health}: {row.health_reason}',
        ),
        (row.quarantine, f'{device} is quarantined: {row.quarantine}'),
        (row.conflict, f'Another service manages the device of {row.name}.'),
        (row.unusable_reason, f'{row.name} is not usable: {row.unusable_reason}'),
    )
    for applies, reason in obstacles:
        if applies:
            raise NoFreeHandle(reason=reason)
    return _Target(
        row.uuid,
        row.device_rp_uuid,
        row.name,
        row.device_id,
        row.places,
        valid_symbol(row.resource_class or ''),
        row.deployable_id,
        row.num_accelerators,
        row.hostname,
        is_host_down=row.agent == ServiceState.DOWN,
        group_id=row.device_profile_group_id,
        group=row.device_profile_group,
        # Nova may have scheduled by former groups that need another number of units.
        must_use_all=bool(row.alternatives),
    )


def _targets_with_handle(targets: Sequence[_Target]) -> tuple[_Target, ...]:
    """Return the targets that get a handle of their own: the oldest of each group."""
    by_group: dict[tuple[int, int], list[_Target]] = defaultdict(list)
    for target in targets:
        by_group[target.deployable_id, target.group_id].append(target)
    served: list[_Target] = []
    for members in by_group.values():
        requirements = Group.parse(members[0].group).requirements
        served += members[: requirements.count_handles(len(members))]
    return tuple(served)


def _lock_free_handles(
    session: Session, targets: Sequence[_Target]
) -> dict[str, _LockedHandle]:
    """Lock a free handle for each target; return them by uuid of the ARQ."""
    pending: dict[int, list[_Target]] = defaultdict(list)
    for target in targets:
        pending[target.deployable_id].append(target)
    counts = {key: len(members) for key, members in pending.items()}
    # Of small deployables, mostly undivided cards, all handles are needed. One SELECT
    # locks them all. Of a large deployable only as many as needed are locked, because
    # other binds need handles of it.
    undivided = [
        key for key, members in pending.items() if members[0].capacity <= counts[key]
    ]
    locked = _lock(session, _ALL_FREE, deployables=undivided) if undivided else []
    for key in pending.keys() - set(undivided):
        locked += _lock(session, _FREE_LIMITED, deployables=[key], number=counts[key])
    handles: dict[str, _LockedHandle] = {}
    for handle in locked:
        if pending[handle.deployable_id]:
            target = pending[handle.deployable_id].pop()
            if handle.needs_bitstream and not target.loads_bitstream:
                reason = (
                    f'{target.name} contains the logic of an earlier instance, and the '
                    'group of the device profile names no bitstream to replace it.'
                )
                raise NoFreeHandle(reason=reason)
            handles[target.arq_uuid] = handle
    for key, unserved in pending.items():
        if unserved:
            _raise_shortage(session, unserved[0], counts[key])
    return handles


def _lock(
    session: Session,
    statement: Select[int, int, bool, bool],
    **values: object,  # its parameters
) -> list[_LockedHandle]:
    rows = session.connection().execute(statement, values)
    return [_LockedHandle(*row) for row in rows]


def _raise_shortage(session: Session, target: _Target, needed: int) -> NoReturn:
    """Raise the exception for too few unlocked handles.

    Too few unlocked handles does not mean that the provider is exhausted: other
    transactions may roll back, and hosts finish cleaning.
    """
    is_being_cleaned = and_(needs_cleaning(), AttachHandle.missing.is_(False))
    is_being_loaded = and_(
        AttachHandle.arq_uuid.is_(None),
        AttachHandle.preparing.is_(True),
        AttachHandle.missing.is_(False),
    )
    is_dirty = and_(
        AttachHandle.clean_state == CleanState.DIRTY, AttachHandle.missing.is_(False)
    )
    unavailable = or_(is_being_cleaned, is_dirty)
    waiting = AttachHandle.clean_state.in_(OPERATOR_STATES)
    row = session.execute(
        select(
            _count(or_(FREE, unavailable, is_being_loaded)),
            _count(unavailable),
            _count(waiting),
        )
        .select_from(AttachHandle)
        .outerjoin(Arq, Arq.uuid == AttachHandle.arq_uuid)
        .where(AttachHandle.deployable_id == target.deployable_id)
    ).one()
    usable_later, cleaning, failed = map(int, row)
    if usable_later >= needed and cleaning:
        raise UnitsBeingCleaned(number=cleaning, provider=target.rp_uuid)
    if usable_later >= needed:
        raise HandlesContended()
    reason = f'No free accelerator is left on resource provider {target.rp_uuid}.'
    if failed:
        reason += f' Units that an operator must clean or accept: {failed}.'
    raise NoFreeHandle(reason=reason)


def _count(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def _claim(
    session: Session,
    handles: Mapping[str, _LockedHandle],
    places: Mapping[str, int | None],
    generation: int,
) -> None:
    owners = {handle.id: uuid for uuid, handle in handles.items()}
    columns: dict[str, Mapping[int, Any]] = {
        'arq_uuid': owners,
        'place': {key: places[uuid] for key, uuid in owners.items()},
    }
    statement, common = values_by_row(_CLAIM, AttachHandle.id, columns)
    values = {**common, 'ids': list(owners), 'bind_generation': generation}
    if change(session, statement, values) != len(owners):
        raise HandlesContended()
