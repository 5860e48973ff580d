# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage device``: the ARQs and instances of devices."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any

from oslo_config import cfg

from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.parsers import add_command, add_group
from cyborg_lite.cmd.support.text_table import format_table
from cyborg_lite.db.devices import devices
from cyborg_lite.model.devices.impact import DeviceImpact


# Any: the parsers of argparse have no public type.
def add_parsers(parsers: Any) -> None:
    commands = add_group(parsers, 'device', 'show what a device affects')
    impact = add_command(
        commands,
        'impact',
        'list the ARQs and instances of a device or host, or all that have lost '
        'their device; the exit status is 1 if one has',
    )
    impact.add_argument(
        'device',
        nargs='?',
        metavar='DEVICE',
        help='uuid, serial number or PCI address of the device',
    )
    # The name `host` is taken by an option of this service.
    impact.add_argument('--host', dest='of_host', help='only devices of this host')
    impact.add_argument('--format', choices=['table', 'json'], default='table')
    impact.set_defaults(run=_show)


def _show(conf: cfg.ConfigOpts) -> int:
    command = conf.command
    with database.open_database(conf) as db:
        if command.device is not None:
            db.read(devices.check_device_exists, command.device, command.of_host)
        impacts = db.read(devices.list_impacts, command.device, command.of_host)
    if command.device is None and command.of_host is None:
        impacts = tuple(impact for impact in impacts if impact.loss)
    if command.format == 'json':
        print(json.dumps([dataclasses.asdict(impact) for impact in impacts], indent=2))
    elif impacts:
        print(format_table(_rows(impacts)))
    else:
        print('No ARQ is affected.')
    return int(any(impact.loss for impact in impacts))


def _rows(impacts: Iterable[DeviceImpact]) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = [
        ('HOST', 'DEVICE', 'MODEL', 'INSTANCE', 'PROJECT', 'ARQ', 'LOST')
    ]
    for impact in impacts:
        device = impact.hostname, impact.address, impact.model
        owner = impact.instance_uuid or '-', impact.project_id or '-'
        rows.append((*device, *owner, impact.arq_uuid, impact.loss or '-'))
    return rows
