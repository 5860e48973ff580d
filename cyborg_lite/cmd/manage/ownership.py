# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage ownership``: which service owns each device."""

from collections.abc import Iterable
from typing import Final

from oslo_config import cfg

from cyborg_lite.cmd.manage import ownership_plan
from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.json_output import is_json, print_records
from cyborg_lite.cmd.support.parsers import Parsers, add_command
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.model.ownership.plan import (
    OwnedDevice,
    config_lines_for_cyborg,
    config_lines_for_nova,
)

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
    parser.add_argument(
        '--host', dest='of_host', help='show only this host, with configuration lines'
    )
    ownership_plan.add_parsers(parser)


def _show(conf: cfg.ConfigOpts) -> int:
    command = conf.command
    with database.open_database(conf) as db:
        devices = db.read(device_owners.list_owned_devices, command.of_host)
    scope = f'host {command.of_host}' if command.of_host else 'any host'
    empty = f'No agent has reported a device of {scope}.'
    print_records(conf, devices, _COLUMNS, empty, _document)
    conflicts = [device for device in devices if device.conflict]
    if not is_json(conf):
        _print_lines(devices if command.of_host else conflicts)
    return int(bool(conflicts))


def _print_lines(devices: Iterable[OwnedDevice]) -> None:
    for device in devices:
        name = f'{device.address} of host {device.hostname}'
        print(f'\nTo assign {name} to Nova:')
        _print_indented(config_lines_for_nova(device))
        print(f'To assign {name} to this service:')
        _print_indented(config_lines_for_cyborg(device))


def _print_indented(lines: Iterable[tuple[str, str]]) -> None:
    for file, line in lines:
        print(f'  {file}: {line}')


def _document(device: OwnedDevice) -> dict[str, object]:
    """Return the JSON object; its keys are stable."""
    return {
        'hostname': device.hostname,
        'address': device.address,
        'vendor': device.vendor,
        'product': device.product,
        'model': device.model,
        'driver': device.driver,
        'conflict': device.conflict,
        'schedulable': device.schedulable,
        'reason': device.reason,
        'owner': device.owner,
        'for_nova': [list(line) for line in config_lines_for_nova(device)],
        'for_this_service': [list(line) for line in config_lines_for_cyborg(device)],
    }
