# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage ownership``: which service owns each device."""

import dataclasses
from typing import Final

from oslo_config import cfg

from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.json_output import print_records
from cyborg_lite.cmd.support.parsers import Parsers, add_command
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.model.ownership.plan import OwnedDevice

_COLUMNS: Final = {
    'HOST': 'hostname',
    'ADDRESS': 'address',
    'DEVICE': 'model',
    'DRIVER': 'driver',
    'OWNER': 'owner',
    'REASON': 'owner_reason',
}


def add_parsers(parsers: Parsers) -> None:
    parser = add_command(
        parsers,
        'ownership',
        'list the owner of each device; the exit status is 1 on a conflict',
        _show,
        has_table=True,
    )
    # The name `host` is taken by an option of this service.
    parser.add_argument('--host', dest='of_host', help='show only this host')


def _show(conf: cfg.ConfigOpts) -> int:
    command = conf.command
    with database.open_database(conf) as db:
        devices = db.read(device_owners.list_owned_devices, command.of_host)
    scope = f'host {command.of_host}' if command.of_host else 'any host'
    empty = f'No agent has reported a device of {scope}.'
    print_records(conf, devices, _COLUMNS, empty, _document)
    return int(any(device.conflict for device in devices))


def _document(device: OwnedDevice) -> dict[str, object]:
    """Return the JSON object; its keys are stable."""
    return {**dataclasses.asdict(device), 'owner': device.owner}
