# SPDX-License-Identifier: Apache-2.0
"""Devices and hosts that a forecast of a change of hardware starts from."""

from typing import Final
from uuid import uuid4

import pytest
from sqlalchemy import select, update

from cyborg_lite.db import present_hardware
from cyborg_lite.db.engine import Database
from cyborg_lite.db.present_hardware import PresentDevice
from cyborg_lite.db.tables import AttachHandle, Deployable, Device
from cyborg_lite.model import typed_attributes
from cyborg_lite.model.explanations import ReasonCode
from cyborg_lite.model.modes import OfferedInventory
from tests.builders.bound_arqs import create_bound_arqs
from tests.builders.provider_rows import add_device, change_device
from tests.builders.rows import HOST, add_handles
from tests.builders.service_rows import mark_down, mark_up
from tests.support.sql_statements import statements

OFFER: Final = OfferedInventory('PGPU', 1, ('CUSTOM_NVIDIA_1EB8',))


def find_device(database: Database, provider: str) -> str:
    """Return the uuid of the device of a provider."""
    statement = (
        select(Device.uuid)
        .join(Deployable, Deployable.device_id == Device.id)
        .where(Deployable.rp_uuid == provider)
    )
    return database.read(lambda session: session.scalars(statement).one())


def read_device(database: Database, provider: str) -> PresentDevice:
    uuid = find_device(database, provider)
    devices = database.read(present_hardware.list_present_devices, [uuid])
    assert devices.keys() == {uuid}
    assert devices[uuid].uuid == uuid
    return devices[uuid]


def test_device_has_providers_and_attributes(database: Database) -> None:
    mark_up(database, HOST)
    provider = add_device(database, HOST, 'card')
    device = read_device(database, provider)
    assert (device.hostname, device.is_reliable) == (HOST, True)
    assert device.providers == ((provider, OFFER),)
    assert device.attributes == (
        typed_attributes.DEVICE_TYPE.of('GPU'),
        typed_attributes.MODEL.of('T4'),
        typed_attributes.VENDOR.of('10de'),
    )
    assert (device.arqs, device.closed, device.closed_text) == ((), None, '')


def test_devices_are_read_in_three_selects(database: Database) -> None:
    providers = [add_device(database, HOST, f'card{number}') for number in range(3)]
    *uuids, unselected = (find_device(database, provider) for provider in providers)
    with statements(database) as sql:
        devices = database.read(
            present_hardware.list_present_devices, [*uuids, str(uuid4())]
        )
    assert devices.keys() == set(uuids)
    assert unselected not in devices
    assert len(sql) == 3
    for uuid, provider in zip(uuids, providers, strict=False):
        assert devices[uuid].providers == ((provider, OFFER),)


@pytest.mark.parametrize('column', ['resource_class', 'rp_uuid'])
def test_deployable_without_provider_offers_nothing(
    database: Database, column: str
) -> None:
    provider = add_device(database, HOST, 'card')
    uuid = find_device(database, provider)
    no_value = update(Deployable).values({column: None})
    database.write(lambda session: session.execute(no_value))
    devices = database.read(present_hardware.list_present_devices, [uuid])
    assert devices[uuid].providers == ()


def test_device_in_use_has_its_arqs(database: Database) -> None:
    arqs = create_bound_arqs(database, 2)
    providers = select(Deployable.rp_uuid).join(AttachHandle).distinct()
    (provider,) = database.read(lambda session: list(session.scalars(providers)))
    assert provider is not None
    unused = add_device(database, 'compute-9', 'unused')
    add_handles(database, unused, 1)
    assert sorted(read_device(database, provider).arqs) == sorted(arqs)
    assert read_device(database, unused).arqs == ()


def test_device_of_down_host_is_closed_and_unreliable(database: Database) -> None:
    provider = add_device(database, HOST, 'card')
    device = read_device(database, provider)
    assert (device.is_reliable, device.closed) == (False, None)  # it never reported
    mark_down(database, HOST)
    device = read_device(database, provider)
    assert (device.is_reliable, device.closed) == (False, ReasonCode.HOST_SILENT)
    assert device.closed_text == 'The agent of the host is down.'


def test_device_in_maintenance_is_closed(database: Database) -> None:
    mark_up(database, HOST)
    provider = add_device(database, HOST, 'card')
    change_device(database, provider, status='maintaining', status_reason='Dust')
    device = read_device(database, provider)
    assert (device.is_reliable, device.closed) == (True, ReasonCode.MAINTENANCE)
    assert device.closed_text == 'The device is in maintenance: Dust.'


def test_agent_states_are_of_given_hosts(database: Database) -> None:
    mark_up(database, 'compute-1')
    mark_down(database, 'compute-2')
    mark_up(database, 'compute-3')
    states = database.read(
        present_hardware.list_agent_states, ['compute-1', 'compute-2', 'compute-4']
    )
    assert states == {'compute-1': 'up', 'compute-2': 'down'}


def test_unhealthy_device_is_unreliable(database: Database) -> None:
    mark_up(database, HOST)
    provider = add_device(database, HOST, 'card')
    database.write(
        lambda session: session.execute(update(Device).values(health='failed'))
    )
    device = read_device(database, provider)
    assert (device.is_reliable, device.closed) == (False, ReasonCode.UNHEALTHY)
