# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage device configuration`` and ``device reconfigure``."""

import argparse
import getpass
import json
from typing import Any

from oslo_config import cfg

from cyborg_lite.cmd import database
from cyborg_lite.cmd.hardware_sets import read_hardware_sets
from cyborg_lite.cmd.parsers import add_command
from cyborg_lite.conductor.reconfiguring import ReconfigurationService
from cyborg_lite.db.engine import Database
from cyborg_lite.model.reconfiguration import (
    ConfigurationRequest,
    DeviceConfiguration,
    Reconfiguration,
    ReconfigurationState,
)
from cyborg_lite.rpc import wire
from cyborg_lite.rpc.context import daemon_context


# Any: the parsers of argparse have no public type.
def add_parsers(commands: Any) -> None:
    """Add the commands to the group ``device``."""
    show = add_command(
        commands,
        'configuration',
        'show the hardware sets of a device and the changes by them, with the log of '
        'the last one; the exit status is 1 if the last one failed',
    )
    show.add_argument('device', metavar='DEVICE', help='uuid of the device')
    show.add_argument('--format', choices=['text', 'json'], default='text')
    show.set_defaults(run=_show)
    change = add_command(
        commands,
        'reconfigure',
        'run the teardown and the set-up of a hardware set for a device that no '
        'instance uses; a conductor does so in the background',
    )
    change.add_argument('device', metavar='DEVICE', help='uuid of the device')
    change.add_argument('--set', dest='hardware_set', required=True, metavar='SET')
    change.add_argument(
        '--setting',
        dest='settings',
        action='append',
        default=[],
        type=_parse_setting,
        metavar='KEY=JSON',
        help='a setting that the set declares, for example count=4; can be repeated',
    )
    change.set_defaults(run=_change)


# Any: a JSON value.
def _parse_setting(text: str) -> tuple[str, Any]:
    name, separator, value = text.partition('=')
    if not separator:
        raise argparse.ArgumentTypeError(f'{text} is not KEY=JSON')
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _show(conf: cfg.ConfigOpts) -> int:
    with database.open_database(conf) as db:
        configuration = _create_service(conf, db).show(conf.command.device)
    if conf.command.format == 'json':
        print(json.dumps(wire.dump(configuration), indent=2))
    else:
        _print_configuration(configuration)
    last = next(iter(configuration.changes), None)
    return int(last is not None and last.state is ReconfigurationState.FAILED)


def _change(conf: cfg.ConfigOpts) -> int:
    command = conf.command
    request = ConfigurationRequest(
        command.hardware_set,
        dict(command.settings),
        f'{getpass.getuser()} on a controller',
    )
    with database.open_database(conf) as db:
        configuration = _create_service(conf, db).change(
            daemon_context(), command.device, request
        )
    uuid = configuration.changes[0].uuid
    print(f'Change {uuid} of device {command.device} is started.')
    return 0


def _create_service(conf: cfg.ConfigOpts, db: Database) -> ReconfigurationService:
    sets = read_hardware_sets(conf.conductor.hardware_sets)
    return ReconfigurationService(db, sets, lambda: None)


def _print_configuration(configuration: DeviceConfiguration) -> None:
    names = ', '.join(item.name for item in configuration.sets) or 'none'
    print(f'Hardware sets of device {configuration.device_uuid}: {names}')
    for item in configuration.sets:
        for name, schema in item.settings.items():
            required = ' (required)' if name in item.required else ''
            print(f'  {item.name}: {name}{required} {json.dumps(schema)}')
    for arq in configuration.arqs:
        print(f'ARQ {arq} prevents a change.')
    for number, change in enumerate(configuration.changes):
        _print_change(change, with_log=number == 0)


def _print_change(change: Reconfiguration, *, with_log: bool) -> None:
    phase = f' in {change.phase}' if change.phase else ''
    print(
        f'Change {change.uuid} by {change.actor}: {change.hardware_set}, '
        f'{change.state}{phase}, {change.tasks} tasks'
    )
    if change.reason:
        print(f'  {change.reason}')
    for line in change.log.splitlines() if with_log else ():
        print(f'  {line}')
