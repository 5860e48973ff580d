# SPDX-License-Identifier: Apache-2.0
"""Providers of a host with the instances whose ARQs name them."""

from collections import defaultdict

from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite.db.tables import Arq, Deployable, Device
from cyborg_lite.model.providers import valid_symbol
from cyborg_lite.model.sharing import OwnProvider


def list_own_providers(session: Session, hostname: str) -> tuple[OwnProvider, ...]:
    """Return the providers of the devices of a host, in two SELECTs."""
    instances: defaultdict[str, set[str]] = defaultdict(set)
    arqs = select(Arq.device_rp_uuid, Arq.instance_uuid).where(
        Arq.hostname == hostname,
        Arq.device_rp_uuid.is_not(None),
        Arq.instance_uuid.is_not(None),
    )
    for provider, instance in session.execute(arqs):
        if provider is not None and instance is not None:
            instances[provider].add(instance)
    deployables = (
        select(Deployable.rp_uuid, Deployable.name, Deployable.resource_class)
        .join(Device, Device.id == Deployable.device_id)
        .where(Device.hostname == hostname, Deployable.rp_uuid.is_not(None))
        .order_by(Deployable.name)
    )
    return tuple(
        OwnProvider(
            uuid=row.rp_uuid or '',
            name=row.name,
            resource_class=valid_symbol(row.resource_class or ''),
            instances=frozenset(instances[row.rp_uuid or '']),
        )
        for row in session.execute(deployables)
    )
