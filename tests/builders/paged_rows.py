# SPDX-License-Identifier: Apache-2.0
"""Rows of each collection of the API, with equal and missing values to sort by."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import uuid4

from sqlalchemy.orm import Session

from cyborg_lite.db.core.tables import (
    Arq,
    Deployable,
    Device,
    DeviceProfile,
    Operation,
    Service,
)

_START: Final = datetime(2026, 11, 21, 10, 30, 0, 123456, tzinfo=UTC)

# Any: a row of the class of the collection; values of its columns.
Row = Any
Columns = dict[str, Any]


def _times(number: int) -> Columns:
    """Return times of which two rows each are equal; every third row has no update."""
    time = _START + timedelta(microseconds=number // 2)
    return {'created_at': time, 'updated_at': None if number % 3 == 0 else time}


def _device(session: Session, number: int) -> Row:
    return Device(
        uuid=str(uuid4()),
        hostname=f'compute-{number % 2}',
        type='GPU' if number % 2 else 'FPGA',
        vendor='10de',
        model=('T4', 'A100', 'é"\\ 💻')[number % 3],
        driver='NVIDIA',
        status='enabled' if number % 4 else 'maintaining',
        control_address=f'0000:{number:02x}:00.0',
        hardware_id=uuid4().hex,
        **_times(number),
    )


def _deployable(session: Session, number: int) -> Row:
    device = _device(session, number)
    session.add(device)
    session.flush()
    return Deployable(
        uuid=str(uuid4()),
        device_id=device.id,
        name=f'name-{number // 2}',
        traits=[],
        num_accelerators=number % 3,
        driver_name=None if number % 2 else 'NVIDIA',
        rp_uuid=str(uuid4()),
        **_times(number),
    )


def _profile(session: Session, number: int) -> Row:
    return DeviceProfile(
        uuid=str(uuid4()),
        name=f'profile-{uuid4()}',
        description=None if number % 2 else f'text {number % 3}',
        groups=[{'resources:PGPU': '1'}],
        enabled=number % 2 == 0,
        is_public=number % 3 == 0,
        **_times(number),
    )


def _arq(session: Session, number: int) -> Row:
    profile = _profile(session, number)
    session.add(profile)
    session.flush()
    return Arq(
        uuid=str(uuid4()),
        state='Initial' if number % 2 else 'Unbound',
        device_profile_id=profile.id,
        device_profile_name=f'profile-{number % 3}',
        device_profile_group_id=0,
        device_profile_group={'resources:PGPU': '1'},
        resource_class='PGPU',
        project_id=f'project-{number % 2}',
        hostname=None if number % 2 else f'compute-{number}',
        instance_uuid=None if number % 3 else str(uuid4()),
        **_times(number),
    )


def _service(session: Session, number: int) -> Row:
    time = _START + timedelta(microseconds=number // 2)
    return Service(
        uuid=str(uuid4()),
        binary=f'binary-{number % 2}',
        host=f'host-{uuid4()}',
        version='1',
        state='up' if number % 2 else 'down',
        started_at=time,
        heartbeat_at=time,
    )


def _operation(session: Session, number: int) -> Row:
    return Operation(
        uuid=str(uuid4()),
        kind='bind' if number % 2 else 'audit',
        subject_type='instance',
        subject_id=str(uuid4()),
        parameters={},
        project_id=f'project-{number % 2}',
        state='waiting' if number % 3 else 'failed',
        **_times(number),
    )


BUILDERS: Final[Mapping[str, Callable[[Session, int], Row]]] = {
    'accelerator_requests': _arq,
    'deployables': _deployable,
    'device_profiles': _profile,
    'devices': _device,
    'operations': _operation,
    'services': _service,
}
"""Functions that build a row that is not added yet, by the path of the collection."""


def add_row(session: Session, collection: str, number: int) -> str:
    """Add a row to a collection of the API and return its uuid.

    :param number: position among the rows, which its values depend on
    """
    row = BUILDERS[collection](session, number)
    session.add(row)
    uuid: str = row.uuid
    return uuid


def delete_row(session: Session, collection: str, uuid: str) -> None:
    """Delete the row with the uuid."""
    table = type(BUILDERS[collection](session, 0))
    session.delete(session.query(table).filter_by(uuid=uuid).one())
