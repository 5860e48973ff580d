# SPDX-License-Identifier: Apache-2.0
"""Numbers of units, ARQs and daemons in the whole cloud, for metrics."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cyborg_lite.db.core.tables import (
    Arq,
    AttachHandle,
    Deployable,
    Device,
    LoadedRegion,
    Service,
)
from cyborg_lite.db.hosts.host_topology import AVAILABILITY
from cyborg_lite.model.capacity.availability import DeployableUnits
from cyborg_lite.model.hosts.topology import Availability


def count_units(session: Session) -> tuple[DeployableUnits, ...]:
    """Return the units of each deployable that can be scheduled, in two SELECTs."""
    availability = AVAILABILITY.label('availability')
    counts: dict[int, dict[Availability, int]] = {}
    rows = session.execute(
        select(AttachHandle.deployable_id, availability, func.count())
        .join(Deployable, Deployable.id == AttachHandle.deployable_id)
        .join(Device, Device.id == Deployable.device_id)
        .outerjoin(LoadedRegion, LoadedRegion.deployable_id == Deployable.id)
        .group_by(AttachHandle.deployable_id, availability)
    )
    for deployable_id, state, number in rows:
        counts.setdefault(deployable_id, {})[Availability(state)] = number
    deployables = session.execute(
        select(
            Deployable.id,
            Deployable.resource_class,
            Deployable.traits,
            Deployable.reserved,
        ).where(Deployable.resource_class.is_not(None))
    )
    return tuple(
        DeployableUnits(
            row.resource_class or '',
            _read_traits(row.traits),
            counts[row.id],
            row.reserved,
        )
        for row in deployables
        if row.id in counts
    )


def count_arqs(session: Session) -> Mapping[str, int]:
    """Return the number of ARQs by state."""
    rows = session.execute(select(Arq.state, func.count()).group_by(Arq.state))
    return {row.state: int(row[1]) for row in rows}


def count_services(session: Session) -> Mapping[tuple[str, str], int]:
    """Return the number of daemons by binary and state."""
    keys = Service.binary, Service.state
    rows = session.execute(select(*keys, func.count()).group_by(*keys))
    return {(binary, state): number for binary, state, number in rows}


# Any: the column stores any JSON.
def _read_traits(traits: Any) -> tuple[str, ...]:
    return tuple(map(str, traits)) if isinstance(traits, list) else ()
