# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage device``: the ARQs and instances of devices."""

from typing import Final

from oslo_config import cfg

from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.json_output import print_records
from cyborg_lite.cmd.support.parsers import Parsers, add_command, add_group
from cyborg_lite.db.devices import devices

_COLUMNS: Final = {
    'HOST': 'hostname',
    'DEVICE': 'address',
    'MODEL': 'model',
    'INSTANCE': 'instance_uuid',
    'PROJECT': 'project_id',
    'ARQ': 'arq_uuid',
    'LOST': 'loss',
}


def add_parsers(parsers: Parsers) -> None:
    commands = add_group(parsers, 'device', 'show what a device affects')
    impact = add_command(
        commands,
        'impact',
        'list the ARQs and instances of a device or host, or all that have lost '
        'their device; the exit status is 1 if one has',
        _show,
        has_table=True,
    )
    impact.add_argument(
        'device',
        nargs='?',
        metavar='DEVICE',
        help='uuid, serial number or PCI address of the device',
    )
    # The name `host` is taken by an option of this service.
    impact.add_argument('--host', dest='of_host', help='only devices of this host')


def _show(conf: cfg.ConfigOpts) -> int:
    command = conf.command
    with database.open_database(conf) as db:
        if command.device is not None:
            db.read(devices.check_device_exists, command.device, command.of_host)
        impacts = db.read(devices.list_impacts, command.device, command.of_host)
    if command.device is None and command.of_host is None:
        impacts = tuple(impact for impact in impacts if impact.loss)
    print_records(conf, impacts, _COLUMNS, 'No ARQ is affected.')
    return int(any(impact.loss for impact in impacts))
