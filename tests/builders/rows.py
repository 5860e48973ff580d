# SPDX-License-Identifier: Apache-2.0
"""Rows for database tests: devices with handles, device profiles and ARQs."""

from collections.abc import Mapping
from types import MappingProxyType
from uuid import uuid4

from sqlalchemy import select
from sqlalchemy.orm import Session

from cyborg_lite.db.arqs import arqs
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import (
    Arq,
    AttachHandle,
    Deployable,
    Device,
    DeviceProfile,
)
from cyborg_lite.model.arqs.arqs import Binding
from cyborg_lite.model.jobs import Owner
from cyborg_lite.model.profiles.device_profiles import Group, GroupRequirements

PROJECT = 'b' * 32
HOST = 'compute-1'
OWNER = Owner(name='conductor:1:1', lease_ms=30_000)


def add_card(
    database: Database,
    handles: int,
    *,
    needs_host: bool = False,
    missing: bool = False,
    group: Mapping[str, str] = MappingProxyType({'resources:PGPU': '1'}),
) -> str:
    """Add a device with one deployable and handles; return the provider uuid.

    :param group: the deployable has its resource class and its required traits
    """
    requirements = Group.parse(group).requirements
    columns = {'needs_host': needs_host, 'missing': missing}
    return database.write(_add_card, handles, columns, requirements)


def _add_card(
    session: Session,
    handles: int,
    columns: dict[str, bool],
    requirements: GroupRequirements,
) -> str:
    identity = uuid4().hex[:8]
    device = Device(
        uuid=str(uuid4()),
        hostname=HOST,
        type='GPU',
        vendor='10de',
        model='T4',
        driver='NVIDIA',
        control_address=f'0000:{identity[:2]}:00.0',
        hardware_id=identity,
    )
    session.add(device)
    session.flush()
    deployable = Deployable(
        uuid=str(uuid4()),
        device_id=device.id,
        name=f'{HOST}_{identity}',
        resource_class=requirements.resource_classes[0],
        traits=sorted(requirements.required),
        num_accelerators=handles,
        rp_uuid=str(uuid4()),
    )
    session.add(deployable)
    session.flush()
    rp_uuid = deployable.rp_uuid
    assert rp_uuid is not None
    session.add_all(
        _handle(deployable.id, f'0000:{identity[:2]}:00.{number}', **columns)
        for number in range(handles)
    )
    return rp_uuid


def _handle(deployable: int, key: str, **columns: bool) -> AttachHandle:
    return AttachHandle(
        uuid=str(uuid4()),
        deployable_id=deployable,
        key=key,
        type='PCI',
        info={'domain': '0000', 'bus': '3b', 'device': '00', 'function': '0'},
        **columns,
    )


def add_handles(database: Database, rp_uuid: str, number: int) -> None:
    """Add handles to a deployable that has none."""
    database.write(_add_handles, rp_uuid, number)


def _add_handles(session: Session, rp_uuid: str, number: int) -> None:
    deployable_id = select(Deployable.id).where(Deployable.rp_uuid == rp_uuid)
    deployable = session.scalars(deployable_id).one()
    session.add_all(
        _handle(deployable, f'{rp_uuid}/{place}') for place in range(number)
    )


def add_arqs(database: Database, number: int, project: str = PROJECT) -> list[str]:
    """Add ARQs of one new profile; return their uuids in the order of creation."""
    name = add_profile(database, [{'resources:PGPU': str(number)}])
    return [arq.uuid for arq in database.write(arqs.create_arqs, name, project)]


def add_profile(
    database: Database, groups: list[dict[str, str]], name: str = ''
) -> str:
    """Add a device profile and return its name.

    :param name: empty: a random one
    """
    name = name or f'profile-{uuid4()}'
    database.write(_add_profile, name, groups)
    return name


def _add_profile(session: Session, name: str, groups: list[dict[str, str]]) -> None:
    session.add(DeviceProfile(uuid=str(uuid4()), name=name, groups=groups))


def bindings(
    uuids: list[str], rp_uuid: str, instance: str | None = None
) -> dict[str, Binding]:
    instance = instance or str(uuid4())
    return {uuid: Binding(HOST, rp_uuid, instance) for uuid in uuids}


def states(database: Database, uuids: list[str]) -> list[str]:
    """Return the states of existing ARQs in the order of ``uuids``."""
    states_by_uuid = database.read(_states, uuids)
    return [states_by_uuid[uuid] for uuid in uuids if uuid in states_by_uuid]


def _states(session: Session, uuids: list[str]) -> dict[str, str]:
    rows = session.execute(select(Arq.uuid, Arq.state).where(Arq.uuid.in_(uuids)))
    return {row.uuid: row.state for row in rows}


def owners(database: Database) -> list[str]:
    """Return the uuids of ARQs that own a handle."""
    return sorted(database.read(_owners))


def _owners(session: Session) -> list[str]:
    owner_column = AttachHandle.arq_uuid
    return [
        owner for owner in session.scalars(select(owner_column)) if owner is not None
    ]
