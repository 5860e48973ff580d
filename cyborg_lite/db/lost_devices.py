# SPDX-License-Identifier: Apache-2.0
"""Devices that bound ARQs have lost, and the ARQs and instances that use a device.

A device is lost while it is gone or failed, or while the host does not report the
attach handle. Nothing is stored: an ARQ is usable again as soon as the device is.
"""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import ColumnElement, Row, Select, func, or_, select
from sqlalchemy.orm import Session

from cyborg_lite.db.tables import Arq, AttachHandle, Deployable, Device
from cyborg_lite.exceptions import DeviceNotFound
from cyborg_lite.model.arqs import DEVICE_IN_USE_STATES, State
from cyborg_lite.model.device_impact import DeviceImpact
from cyborg_lite.model.inventory import UNUSABLE_HEALTH

_MISSING: Final = 'The attach handle is missing on the host.'


def is_lost() -> ColumnElement[bool]:
    """Return SQL that is true for a handle whose device cannot be used.

    For a SELECT that joins ``devices`` to the handles.
    """
    return or_(AttachHandle.missing.is_(True), Device.health.in_(UNUSABLE_HEALTH))


def describe_loss(missing: bool, health: str | None, reason: str | None) -> str:
    """Return why a handle cannot be used, or an empty string.

    :param health: of the device; None: there is no device
    """
    if health in UNUSABLE_HEALTH:
        return f'The device is {health}: {reason}'
    return _MISSING if missing else ''


def list_impacts(
    session: Session, device: str | None = None, hostname: str | None = None
) -> tuple[DeviceImpact, ...]:
    """Return the ARQs that use devices, in one SELECT.

    :param device: uuid, serial number or control address; None: all devices
    :param hostname: None: all hosts
    """
    statement = _select_in_use(
        Arq, AttachHandle.missing, Device, AttachHandle.key.label('key')
    ).order_by(Device.hostname, Device.control_address, Arq.id)
    if device is not None:
        statement = statement.where(_is_named(device))
    if hostname is not None:
        statement = statement.where(Device.hostname == hostname)
    return tuple(_impact(row) for row in session.execute(statement))


def check_device_exists(
    session: Session, device: str, hostname: str | None = None
) -> None:
    """Check that a device is stored.

    :param device: uuid, serial number or control address
    :raises DeviceNotFound: no device has the identifier
    """
    statement = select(Device.id).where(_is_named(device)).limit(1)
    if hostname is not None:
        statement = statement.where(Device.hostname == hostname)
    if session.scalar(statement) is None:
        raise DeviceNotFound(uuid=device)


def count_lost_arqs(session: Session) -> Mapping[str, int]:
    """Return the number of bound ARQs with a lost device, by host."""
    statement = (
        _select_in_use(Device.hostname, func.count())
        .where(Arq.state == State.BOUND, is_lost())
        .group_by(Device.hostname)
    )
    return {row[0]: row[1] for row in session.execute(statement)}


# Any: the columns of the caller.
def _select_in_use(*columns: Any) -> Select[*tuple[Any, ...]]:
    return (
        select(*columns)
        .select_from(AttachHandle)
        .join(Arq, Arq.uuid == AttachHandle.arq_uuid)
        .join(Deployable, Deployable.id == AttachHandle.deployable_id)
        .join(Device, Device.id == Deployable.device_id)
        .where(Arq.state.in_(DEVICE_IN_USE_STATES))
    )


def _is_named(device: str) -> ColumnElement[bool]:
    names = (Device.uuid, Device.hardware_id, Device.control_address)
    return or_(*(column == device for column in names))


def _impact(row: Row[*tuple[Any, ...]]) -> DeviceImpact:
    arq: Arq = row.Arq
    device: Device = row.Device
    loss = describe_loss(row.missing, device.health, device.health_reason)
    return DeviceImpact(
        hostname=device.hostname,
        address=device.control_address,
        device_uuid=device.uuid,
        model=device.model,
        handle=row.key,
        arq_uuid=arq.uuid,
        instance_uuid=arq.instance_uuid,
        project_id=arq.project_id,
        device_profile_name=arq.device_profile_name,
        loss=loss,
    )
