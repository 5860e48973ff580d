# SPDX-License-Identifier: Apache-2.0
"""Changes of devices and device profiles that expect a generation."""

from collections.abc import Callable
from functools import partial

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.devices import devices, modes, reconfigurations
from cyborg_lite.db.devices.reconfigurations import NewReconfiguration
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.profiles import profiles
from cyborg_lite.errors.devices import DeviceNotFound
from cyborg_lite.errors.profiles import DeviceProfileNotFound
from cyborg_lite.model.devices.devices import DeviceStatus
from cyborg_lite.model.jobs import ModePayload
from cyborg_lite.model.profiles.device_profiles import ProfileChange
from cyborg_lite.model.queries import Query
from tests.builders.reports import card, report
from tests.builders.rows import add_profile

CHANGE = ProfileChange(fields=('description',), description='a')

# Takes a database, a uuid and the expected generation.
Change = Callable[[Database, str, int | None], object]


def set_status(database: Database, uuid: str, generation: int | None) -> object:
    write = database.write
    return write(
        devices.set_device_status, uuid, DeviceStatus.MAINTAINING, 'a', generation
    )


def change_mode(database: Database, uuid: str, generation: int | None) -> object:
    payload = ModePayload(uuid, 'fast')
    return database.write(modes.add_change, payload, None, generation)


def change_configuration(
    database: Database, uuid: str, generation: int | None
) -> object:
    new = NewReconfiguration(uuid, 'gpus', {}, 'joe', 1000)
    add = partial(reconfigurations.add_change, generation=generation)
    return database.write(add, new, lambda _: False)


def change_profile(database: Database, uuid: str, generation: int | None) -> object:
    return database.write(profiles.update_profile, uuid, CHANGE, None, generation)


def delete_profile(database: Database, uuid: str, generation: int | None) -> object:
    return database.write(profiles.delete_profiles, [uuid], None, generation)


def create_device(database: Database) -> str:
    database.write(reports.store_report, report(card(1)))
    return database.read(devices.list_devices, Query())[0].uuid


def create_profile(database: Database) -> str:
    name = add_profile(database, [{'resources:PGPU': '1'}])
    query = Query(filters={'name': (name,)})
    return database.read(profiles.list_profiles, query)[0].uuid


CHANGES = [
    (create_device, set_status, DeviceNotFound),
    (create_device, change_mode, DeviceNotFound),
    (create_device, change_configuration, DeviceNotFound),
    (create_profile, change_profile, DeviceProfileNotFound),
    (create_profile, delete_profile, DeviceProfileNotFound),
]
