# SPDX-License-Identifier: Apache-2.0
"""Topology of a host, and the availability of its units, from the stored inventory."""

from collections import defaultdict
from typing import Any, Final

from sqlalchemy import and_, case, or_, select
from sqlalchemy.orm import Session, aliased

from cyborg_lite.db.core.query import convert_rows, fetch_rows
from cyborg_lite.db.core.records import From, Record
from cyborg_lite.db.core.tables import (
    Arq,
    AttachHandle,
    Deployable,
    Device,
    LoadedRegion,
    Service,
)
from cyborg_lite.db.devices.devices import SHOWN_HEALTH, SHOWN_HEALTH_REASON
from cyborg_lite.db.inventory.handles import FREE
from cyborg_lite.errors.hosts import HostNotFound
from cyborg_lite.model.devices.cleaning import CleanState
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.hosts.topology import (
    Availability,
    HostTopology,
    TopologyDeployable,
    TopologyDevice,
    TopologyUnit,
    UnitUser,
    group_by_numa_node,
    read_bridges,
    read_numa_node,
)
from cyborg_lite.model.inventory.host_report import UNUSABLE_HEALTH, Health

_HAS_CONFLICT: Final = or_(Device.conflict != '', Device.health == Health.CONFLICT)

AVAILABILITY: Final = case(
    (
        or_(
            AttachHandle.missing.is_(True),
            Device.health.in_(UNUSABLE_HEALTH),
            LoadedRegion.unusable_reason != '',
        ),
        Availability.BROKEN.value,
    ),
    (AttachHandle.arq_uuid.is_not(None), Availability.USED.value),
    (
        and_(FREE, Device.status != DeviceStatus.MAINTAINING, ~_HAS_CONFLICT),
        Availability.FREE.value,
    ),
    else_=Availability.RESERVED.value,
)
"""SQL value of Availability, for a SELECT that joins ``devices`` and the loaded
regions to the handles."""

_PARENT: Final = aliased(Deployable)
_DEPLOYABLE: Final = Record(
    TopologyDeployable,
    Deployable,
    parent_uuid=_PARENT.uuid,
    traits=From(lambda traits: tuple(map(str, traits)), Deployable.traits),
    total=Deployable.num_accelerators,
)
_DEVICE: Final = Record(
    TopologyDevice,
    Device,
    address=Device.control_address,
    health=SHOWN_HEALTH,
    health_reason=SHOWN_HEALTH_REASON,
    pci_bridges=From(read_bridges, Device.std_board_info),
)


def read_host_topology(session: Session, hostname: str) -> HostTopology:
    """Return the topology of a host, in four SELECTs.

    :raises HostNotFound: no agent and no device of the host is stored
    """
    agent = session.execute(
        select(Service.state).where(Service.is_agent_of(hostname))
    ).scalar_one_or_none()
    statement = _DEVICE.select(Device.std_board_info)
    statement = statement.where(Device.hostname == hostname).order_by(Device.id)
    rows = fetch_rows(session, statement, Device)
    if agent is None and not rows:
        raise HostNotFound(host=hostname)
    deployables = _list_deployables(session, hostname) if rows else {}
    devices = convert_rows(
        rows,
        Device,
        lambda row: (
            read_numa_node(row.std_board_info),
            _DEVICE.read(row, deployables=tuple(deployables.get(row.row_id, ()))),
        ),
    )
    return HostTopology(hostname, agent, group_by_numa_node(devices))


def _list_deployables(
    session: Session, hostname: str
) -> dict[int, list[TopologyDeployable]]:
    """Return the deployables by id of the device, parents before their children."""
    units = _list_units(session, hostname)
    statement = (
        _DEPLOYABLE.select(Deployable.device_id)
        .join(Device, Device.id == Deployable.device_id)
        .outerjoin(_PARENT, _PARENT.id == Deployable.parent_id)
        .where(Device.hostname == hostname)
        .order_by(Deployable.parent_id.is_not(None), Deployable.name)
    )
    rows = fetch_rows(session, statement, Deployable)
    pairs = convert_rows(
        rows,
        Deployable,
        lambda row: (
            row.device_id,
            _DEPLOYABLE.read(row, units=tuple(units.get(row.row_id, ()))),
        ),
    )
    deployables: dict[int, list[TopologyDeployable]] = defaultdict(list)
    for device_id, deployable in pairs:
        deployables[device_id].append(deployable)
    return deployables


def _list_units(session: Session, hostname: str) -> dict[int, list[TopologyUnit]]:
    """Return the units by id of the deployable."""
    statement = (
        select(
            AttachHandle,
            AVAILABILITY.label('availability'),
            Device.status,
            Device.status_reason,
            Device.health,
            Device.health_reason,
            Device.conflict,
            LoadedRegion.unusable_reason,
            Arq.state.label('arq_state'),
            Arq.device_profile_name,
            Arq.instance_uuid,
            Arq.project_id,
        )
        .join(Deployable, Deployable.id == AttachHandle.deployable_id)
        .join(Device, Device.id == Deployable.device_id)
        .outerjoin(LoadedRegion, LoadedRegion.deployable_id == Deployable.id)
        .outerjoin(Arq, Arq.uuid == AttachHandle.arq_uuid)
        .where(Device.hostname == hostname)
        .order_by(AttachHandle.id)
    )
    units: dict[int, list[TopologyUnit]] = defaultdict(list)
    for row in session.execute(statement):
        units[row.AttachHandle.deployable_id].append(_unit(row))
    return units


# Any: the columns of the SELECT of units.
def _unit(row: Any) -> TopologyUnit:
    handle: AttachHandle = row.AttachHandle
    availability = Availability(row.availability)
    user = None
    if handle.arq_uuid is not None:
        user = UnitUser(
            handle.arq_uuid,
            row.arq_state,
            row.device_profile_name,
            row.instance_uuid,
            row.project_id,
        )
    reason = ''
    if availability is Availability.BROKEN:
        reason = _explain_broken(row)
    elif availability is Availability.RESERVED:
        reason = _explain_reserved(row)
    return TopologyUnit(handle.key, handle.type, availability, reason, user)


def _explain_broken(row: Any) -> str:
    if row.AttachHandle.missing:
        return 'The attach handle is missing on the host.'
    if row.health in UNUSABLE_HEALTH:
        return f'The device is {row.health}: {row.health_reason}'
    return f'The region is unusable: {row.unusable_reason}'


def _explain_reserved(row: Any) -> str:
    handle: AttachHandle = row.AttachHandle
    if row.status == DeviceStatus.MAINTAINING:
        return f'The device is in maintenance: {row.status_reason or "no reason given"}'
    if row.conflict or row.health == Health.CONFLICT:
        manager = row.conflict or row.health_reason
        return f'Another service manages the device: {manager}'
    if handle.in_use:
        return 'A program of the host uses it.'
    if handle.clean_state != CleanState.CLEAN:
        reason = f': {handle.clean_reason}' if handle.clean_reason else ''
        return f'Its clean state is {handle.clean_state}{reason}'
    return 'A job prepares it.'
