# SPDX-License-Identifier: Apache-2.0
"""Rows of devices and deployables, with the values that tests of the API show."""

import json
from typing import Any
from uuid import uuid4

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import Attribute, Deployable, Device
from cyborg_lite.db.devices import deployables, devices
from cyborg_lite.model.devices.devices import DeployableRecord, DeviceRecord
from cyborg_lite.model.queries import Query


def add_device(database: Database, **columns: Any) -> DeviceRecord:
    """Add a device.

    :param columns: values that differ from those of a fake FPGA
    """
    uuid = database.write(lambda session: add_device_row(session, **columns).uuid)
    (record,) = database.read(devices.list_devices, _select(uuid))
    return record


def add_deployable(
    database: Database, attributes: dict[str, str] | None = None, **columns: Any
) -> DeployableRecord:
    """Add a deployable, and a device if there is none.

    :param attributes: values by key
    :param columns: values that differ from those of a fake FPGA
    """

    def add(session: Session) -> str:
        row = add_deployable_row(session, **columns)
        session.add_all(
            Attribute(uuid=str(uuid4()), deployable_id=row.id, key=key, value=value)
            for key, value in (attributes or {}).items()
        )
        return row.uuid

    (record,) = database.read(
        deployables.list_deployables, _select(database.write(add))
    )
    return record


def _select(uuid: str) -> Query:
    return Query(filters={'uuid': (uuid,)}, detailed=True)


def add_device_row(session: Session, **columns: Any) -> Device:
    """Add the row of a device and return it.

    :param columns: ``std_board_info`` may be JSON text
    """
    board = columns.get('std_board_info')
    if isinstance(board, str):
        columns['std_board_info'] = json.loads(board)
    row = Device(
        **{
            'uuid': str(uuid4()),
            'type': 'FPGA',
            'vendor': '0xABCD',
            'model': 'FakeDevice',
            'hostname': 'compute-1',
            'driver': 'FakeDriver',
            'control_address': str(uuid4()),
            'hardware_id': str(uuid4()),
            'std_board_info': {'class': 'Fake class'},
            'vendor_board_info': 'fake_vendor_info',
            **columns,
        }
    )
    session.add(row)
    session.flush()
    return row


def add_deployable_row(
    session: Session, hostname: str = 'compute-1', **columns: Any
) -> Deployable:
    """Add the row of a deployable, of the first device or a new one, and return it."""
    device = session.scalar(select(Device).order_by(Device.id).limit(1))
    device = device or add_device_row(session, hostname=hostname)
    number = session.scalar(select(func.count()).select_from(Deployable))
    row = Deployable(
        **{
            'uuid': str(uuid4()),
            'device_id': device.id,
            'name': f'{hostname}_FakeDevice' + (f'_{number}' if number else ''),
            'traits': [],
            'num_accelerators': 16,
            'rp_uuid': str(uuid4()),
            'driver_name': 'fake',
            **columns,
        }
    )
    session.add(row)
    session.flush()
    return row
