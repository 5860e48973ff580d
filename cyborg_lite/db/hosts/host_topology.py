# SPDX-License-Identifier: Apache-2.0
"""Topology of a host, from the stored inventory."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from cyborg_lite.db.capacity.provider_capacity import (
    CLOSURE_COLUMNS,
    find_withholding,
)
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
from cyborg_lite.db.devices import elastic_cards
from cyborg_lite.db.devices.devices import SHOWN_HEALTH, SHOWN_HEALTH_REASON
from cyborg_lite.db.ownership import allocations
from cyborg_lite.db.profiles import selectors
from cyborg_lite.db.providers.providers import UNIT_STATE
from cyborg_lite.errors.hosts import HostNotFound
from cyborg_lite.model.capacity.availability import Withholding, withhold
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
_USER: Final = Record(UnitUser, Arq, arq_uuid=Arq.uuid, arq_state=Arq.state)


def read_host_topology(session: Session, hostname: str) -> HostTopology:
    """Return the topology of a host, in five SELECTs.

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
            _DEPLOYABLE.read(row, units=units.get(row.row_id, ())),
        ),
    )
    deployables: dict[int, list[TopologyDeployable]] = defaultdict(list)
    for device_id, deployable in pairs:
        deployables[device_id].append(deployable)
    return deployables


def _list_units(
    session: Session, hostname: str
) -> Mapping[int, tuple[TopologyUnit, ...]]:
    """Return the units by id of the deployable."""
    statement = (
        _USER.select(AttachHandle, UNIT_STATE, *CLOSURE_COLUMNS)
        .add_columns(Deployable.rp_uuid, Deployable.device_id)
        .add_columns(elastic_cards.PLACES, selectors.GROUP_SIZE)
        .select_from(AttachHandle)
        .join(Deployable, Deployable.id == AttachHandle.deployable_id)
        .join(Device, Device.id == Deployable.device_id)
        .outerjoin(Service, Service.is_agent_of(Device.hostname))
        .outerjoin(LoadedRegion, LoadedRegion.deployable_id == Deployable.id)
        .outerjoin(Arq, Arq.uuid == AttachHandle.arq_uuid)
        .where(Device.hostname == hostname)
        .order_by(AttachHandle.id)
    )
    units: dict[int, list[TopologyUnit]] = defaultdict(list)
    withholdings: dict[int, Withholding] = {}
    consumers = _list_consumers(session, hostname)
    rows = session.execute(statement).all()
    fitting = elastic_cards.count_fitting(session, rows)
    for row in rows:
        deployable_id = row.AttachHandle.deployable_id
        handle, state = row.AttachHandle, Availability(row.state)
        user = None if handle.arq_uuid is None else _USER.read(row)
        units[deployable_id].append(
            TopologyUnit(handle.key, handle.type, state, _explain(state, handle), user)
        )
        withholdings[deployable_id] = replace(
            find_withholding(row),
            consumers=consumers[row.rp_uuid],
            fitting=fitting.get(row.rp_uuid),
        )
    return {key: withhold(items, withholdings[key]) for key, items in units.items()}


def _list_consumers(
    session: Session, hostname: str
) -> Mapping[str | None, Sequence[str]]:
    """Return the consumers without an ARQ by provider, one entry per unit."""
    consumers: defaultdict[str | None, list[str]] = defaultdict(list)
    for item in allocations.list_unowned(session, hostname):
        if item.unowned_since is not None:
            consumers[item.rp_uuid] += [item.consumer_uuid] * item.amount
    return consumers


def _explain(state: Availability, handle: AttachHandle) -> str:
    """Return why a unit is neither free nor used by its own state."""
    match state:
        case Availability.FREE | Availability.USED:
            return ''
        case Availability.BROKEN:
            return 'The attach handle is missing on the host.'
        case Availability.DIRTY:
            reason = f': {handle.clean_reason}' if handle.clean_reason else ''
            return f'Its clean state is {handle.clean_state}{reason}'
    return 'A program of the host uses it.'
