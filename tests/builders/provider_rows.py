# SPDX-License-Identifier: Apache-2.0
"""Rows of devices and deployables that Placement must show."""

from collections.abc import Sequence
from typing import Any
from uuid import NAMESPACE_DNS, uuid3, uuid4

from sqlalchemy import delete, update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Deployable, Device

Columns = dict[str, Any]  # by column; types vary


def add_device(database: Database, hostname: str, part: str, **columns: Any) -> str:
    """Add a device with the deployable ``<hostname>_<part>``; return its provider uuid.

    :param columns: further columns of the deployable
    """
    name = f'{hostname}_{part}'
    return database.write(_add, hostname, name, columns)


def _add(session: Session, hostname: str, name: str, columns: Columns) -> str:
    device = Device(
        uuid=str(uuid4()),
        hostname=hostname,
        type='GPU',
        vendor='10de',
        model='T4',
        driver='NVIDIA',
        control_address=name,
        hardware_id=str(uuid4()),
    )
    session.add(device)
    session.flush()
    rp_uuid = str(uuid3(NAMESPACE_DNS, name))
    usual: Columns = {
        'resource_class': 'PGPU',
        'traits': ['CUSTOM_NVIDIA_1EB8'],
        'num_accelerators': 1,
        'rp_uuid': rp_uuid,
    }
    session.add(
        Deployable(uuid=str(uuid4()), device_id=device.id, name=name, **usual | columns)
    )
    return rp_uuid


def change_deployable(database: Database, rp_uuid: str, **columns: Any) -> None:
    database.write(_change_deployable, rp_uuid, columns)


def _change_deployable(session: Session, rp_uuid: str, columns: Columns) -> None:
    session.execute(
        update(Deployable).where(Deployable.rp_uuid == rp_uuid).values(**columns)
    )


def change_device(database: Database, rp_uuid: str, **columns: Any) -> None:
    """Change columns of the device of a provider."""
    database.write(_change_device, rp_uuid, columns)


def _change_device(session: Session, rp_uuid: str, columns: Columns) -> None:
    session.execute(
        update(Device)
        .where(
            Device.id == Deployable.device_id,
            Deployable.rp_uuid == rp_uuid,
        )
        .values(**columns)
    )


def remove_devices(database: Database, rp_uuids: Sequence[str]) -> None:
    """Delete deployables, as when the host no longer reports them."""
    database.write(_remove, rp_uuids)


def _remove(session: Session, rp_uuids: Sequence[str]) -> None:
    session.execute(delete(Deployable).where(Deployable.rp_uuid.in_(rp_uuids)))
