# SPDX-License-Identifier: Apache-2.0
"""Attach handles that ARQs own."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import bindparam, false, func, select
from sqlalchemy.orm import Session, aliased

from cyborg_lite.db.bitstreams import loaded_regions
from cyborg_lite.db.core.records import From, Record
from cyborg_lite.db.core.tables import (
    Arq,
    AttachHandle,
    Deployable,
    Device,
    LoadedRegion,
    Service,
)
from cyborg_lite.db.inventory.handles import (
    CLAIMED_HANDLE,
    GENERATION_PARAMETER,
    HANDLE_FIELDS,
    needs_cleaning,
)
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.bitstreams.bitstreams import LoadOrder
from cyborg_lite.model.devices.cleaning import choose_policy
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.facts import name_suffix
from cyborg_lite.model.inventory.host_report import CleaningPolicy, HandleType
from cyborg_lite.model.profiles.device_profiles import AttachTarget, Group

_ROOT: Final = aliased(Deployable)


# Any, here and below: JSON.
def _read_load(
    name: str, root_name: str | None, address: str, bitstream: Any
) -> LoadOrder | None:
    loaded = loaded_regions.parse_bitstream(bitstream)
    suffix = name_suffix(name, root_name or name)
    return None if loaded is None else LoadOrder(address, suffix, loaded)


def _choose_policy(
    policy: str, group: Any, handle_type: str, managed: bool
) -> CleaningPolicy:
    # Nova rebinds the functions that outlive their instance.
    has_steps = policy != CleaningPolicy.NEVER or (
        handle_type == HandleType.PCI and managed
    )
    return choose_policy(
        CleaningPolicy(policy), Group.parse(group), has_steps=has_steps
    )


_HANDLE: Final = Record(
    AllocatedHandle,
    AttachHandle,
    Device,
    **HANDLE_FIELDS,
    load=From(
        _read_load,
        Deployable.name,
        _ROOT.name,
        Device.control_address,
        LoadedRegion.bitstream,
    ),
    changed=func.coalesce(LoadedRegion.changed_by_bind, false()),
    for_guest=From(
        lambda group: Group.parse(group).attach_target is AttachTarget.VM,
        Arq.device_profile_group,
    ),
    instance_uuid=func.coalesce(Arq.instance_uuid, ''),
    cleaning=From(
        _choose_policy,
        AttachHandle.cleaning,
        Arq.device_profile_group,
        AttachHandle.type,
        AttachHandle.managed,
    ),
)
_HANDLES: Final = (
    _HANDLE.select()
    .select_from(AttachHandle)
    .join(Arq, AttachHandle.arq_uuid == Arq.uuid)
    .join(Deployable, AttachHandle.deployable_id == Deployable.id)
    .join(Device, Deployable.device_id == Device.id)
    .outerjoin(Service, Service.is_agent_of(Device.hostname))
    .outerjoin(LoadedRegion, LoadedRegion.deployable_id == Deployable.id)
    .outerjoin(_ROOT, Deployable.root_id == _ROOT.id)
    .order_by(AttachHandle.id)
)
_OF_ARQS: Final = _HANDLES.where(AttachHandle.arq_uuid.in_(bindparam('uuids')))
_OF_BIND: Final = _OF_ARQS.where(CLAIMED_HANDLE)


def find_unclean_handle(session: Session, uuid: str) -> AllocatedHandle | None:
    """Return the handle if its host must clean it, else None."""
    statement = _HANDLES.where(AttachHandle.uuid == uuid, needs_cleaning())
    return next(iter(_HANDLE.list(session, statement)), None)


def list_handles_of_arqs(
    session: Session, uuids: Sequence[str]
) -> tuple[AllocatedHandle, ...]:
    """Return the handles that the ARQs own, with all data that their hosts need."""
    return _HANDLE.list(session, _OF_ARQS, {'uuids': uuids})


def list_handles_of_bind(
    session: Session, uuids: Sequence[str], generation: int
) -> tuple[AllocatedHandle, ...]:
    """Return the handles that a bind has claimed, as far as its ARQs own them.

    :param generation: of the bind; 0: of any
    """
    parameters = {'uuids': uuids, GENERATION_PARAMETER: generation}
    return _HANDLE.list(session, _OF_BIND, parameters)


def list_handles_to_rebuild(
    session: Session, hostname: str
) -> tuple[AllocatedHandle, ...]:
    """Return the handles that a host must rebuild after its reboot."""
    rebuilding = Arq.state == State.PROVISIONING
    statement = _HANDLES.where(Device.hostname == hostname, rebuilding)
    return _HANDLE.list(session, statement)


def list_hosts_with_unmanaged_handles(session: Session) -> tuple[str, ...]:
    """Return the hosts with functions that must keep their driver, sorted."""
    statement = (
        select(Device.hostname)
        .distinct()
        .join(Deployable, Deployable.device_id == Device.id)
        .join(AttachHandle, AttachHandle.deployable_id == Deployable.id)
        .where(AttachHandle.managed.is_(False), AttachHandle.missing.is_(False))
        .order_by(Device.hostname)
    )
    return tuple(session.scalars(statement))
