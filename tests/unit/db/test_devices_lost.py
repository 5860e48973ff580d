# SPDX-License-Identifier: Apache-2.0
"""ARQs and instances that use a device, and ARQs that have lost theirs."""

from typing import Any

import pytest
from sqlalchemy import select, update

from cyborg_lite.db.arqs import arqs, binding, release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import AttachHandle, Device
from cyborg_lite.db.devices import devices
from cyborg_lite.errors.devices import DeviceNotFound
from cyborg_lite.model.arqs.arqs import State
from cyborg_lite.model.devices.impact import DeviceImpact
from cyborg_lite.model.inventory.host_report import Health
from cyborg_lite.model.queries import Query
from tests.builders.bind_jobs import ANY_PROJECT, BIND_JOB, BOUND_EVENT_JOB
from tests.builders.rows import HOST, OWNER, add_arqs, add_card, bindings


@pytest.fixture
def arq(database: Database) -> str:
    """Bind an ARQ to a card, and leave another card free."""
    add_card(database, 1)
    uuids = add_arqs(database, 1)
    requested = bindings(uuids, add_card(database, 2))
    job = database.write(binding.accept_bind, requested, ANY_PROJECT, BIND_JOB, OWNER)
    database.write(binding.claim_for_bind, job, uuids, None, BOUND_EVENT_JOB)
    return uuids[0]


def change(database: Database, table: Any, **values: Any) -> None:
    statement = update(table).values(**values)
    database.write(lambda session: session.execute(statement))


def impacts(database: Database, *selection: str | None) -> tuple[DeviceImpact, ...]:
    return database.read(devices.list_impacts, *selection)


def read_device(database: Database, uuid: str) -> Device:
    statement = select(Device).where(Device.uuid == uuid)
    return database.read(lambda session: session.scalars(statement).one())


def test_list_impacts_names_device_and_instance(database: Database, arq: str) -> None:
    (impact,) = impacts(database)
    device = read_device(database, impact.device_uuid)
    assert (impact.arq_uuid, impact.loss) == (arq, '')
    assert (impact.hostname, impact.address) == (HOST, device.control_address)
    assert impact.handle.startswith(device.control_address[:-1])
    assert impact.instance_uuid
    for name in (device.uuid, device.hardware_id, device.control_address):
        assert impacts(database, name) == (impact,)
        database.read(devices.check_device_exists, name, HOST)
    assert impacts(database, None, HOST) == (impact,)
    assert impacts(database, None, 'other') == ()


def test_list_impacts_released_arq_is_no_impact(database: Database, arq: str) -> None:
    database.write(release.unbind_arqs, [arq], ANY_PROJECT, None)
    assert impacts(database) == ()


@pytest.mark.parametrize('hostname', [None, 'other'])
def test_check_device_exists_unknown_raises(
    database: Database, arq: str, hostname: str | None
) -> None:
    (impact,) = impacts(database)
    name = impact.device_uuid if hostname else 'no such device'
    with pytest.raises(DeviceNotFound, match=name):
        database.read(devices.check_device_exists, name, hostname)


@pytest.mark.parametrize(
    ('health', 'loss'),
    [
        (Health.GONE, 'The device is gone: moved away'),
        (Health.FAILED, 'The device is failed: moved away'),
        (Health.DEGRADED, ''),
    ],
)
def test_count_lost_arqs_by_health(
    database: Database, arq: str, health: Health, loss: str
) -> None:
    change(database, Device, health=health, health_reason='moved away')
    (impact,) = impacts(database)
    assert impact.loss == loss
    counts = database.read(devices.count_lost_arqs)
    assert counts == ({HOST: 1} if loss else {})


def test_missing_handle_of_present_device_is_lost(database: Database, arq: str) -> None:
    change(database, AttachHandle, missing=True)
    (impact,) = impacts(database)
    assert impact.loss == 'The attach handle is missing on the host.'
    (listed,) = database.read(arqs.list_arqs, Query(detailed=True), ANY_PROJECT)
    assert (listed.state, listed.status_reason) == (State.UNKNOWN, impact.loss)
    assert database.read(devices.count_lost_arqs) == {HOST: 1}
