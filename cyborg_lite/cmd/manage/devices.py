# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage device``, ``cleaning`` and ``topology``: devices of hosts."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Final

from oslo_config import cfg

from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.json_output import print_records
from cyborg_lite.cmd.support.parsers import Parsers, add_command, add_group
from cyborg_lite.cmd.support.text_table import Columns
from cyborg_lite.db.devices import cleanings, devices
from cyborg_lite.db.hosts.host_topology import read_host_topology
from cyborg_lite.model.devices.cleaning import OPERATOR_STATES
from cyborg_lite.model.hosts.topology import HostTopology
from cyborg_lite.rendering.outline import format_tree
from cyborg_lite.rendering.svg import format_svg

_IMPACT_COLUMNS: Final = {
    'HOST': 'hostname',
    'DEVICE': 'address',
    'MODEL': 'model',
    'INSTANCE': 'instance_uuid',
    'PROJECT': 'project_id',
    'ARQ': 'arq_uuid',
    'LOST': 'loss',
}
_CLEANING_COLUMNS: Final[Columns] = {
    'HOST': 'hostname',
    'DEVICE': 'device_uuid',
    'UNIT': 'unit',
    'STATE': 'state',
    'STEP': 'progress',
    'SINCE': lambda unit: unit.since.isoformat(sep=' ', timespec='seconds'),
    'REASON': 'reason',
}
_TOPOLOGY_FORMATS: Final[Mapping[str, Callable[[HostTopology], str]]] = {
    'tree': format_tree,
    'svg': format_svg,
    'json': lambda topology: json.dumps(dataclasses.asdict(topology), indent=2),
}


def add_device_parsers(parsers: Parsers) -> None:
    commands = add_group(parsers, 'device', 'show what a device affects')
    impact = add_command(
        commands,
        'impact',
        'list the ARQs and instances of a device or host, or all that have lost '
        'their device; the exit status is 1 if one has',
        _show_impact,
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


def _show_impact(conf: cfg.ConfigOpts) -> int:
    command = conf.command
    with database.open_database(conf) as db:
        if command.device is not None:
            db.read(devices.check_device_exists, command.device, command.of_host)
        impacts = db.read(devices.list_impacts, command.device, command.of_host)
    if command.device is None and command.of_host is None:
        impacts = tuple(impact for impact in impacts if impact.loss)
    print_records(conf, impacts, _IMPACT_COLUMNS, 'No ARQ is affected.')
    return int(any(impact.loss for impact in impacts))


def add_cleaning_parsers(parsers: Parsers) -> None:
    commands = add_group(parsers, 'cleaning', 'list unclean units')
    add_command(
        commands,
        'list',
        'list the units that are not clean; the exit status is 1 if one waits for an '
        'operator',
        _list_unclean,
        has_table=True,
    )


def _list_unclean(conf: cfg.ConfigOpts) -> int:
    with database.open_database(conf) as db:
        units = db.read(cleanings.list_unclean_units)
    print_records(conf, units, _CLEANING_COLUMNS, 'All units are clean.')
    return int(any(unit.state in OPERATOR_STATES for unit in units))


def add_topology_parser(parsers: Parsers) -> None:
    command = add_command(
        parsers,
        'topology',
        'show the NUMA nodes, devices, deployables and units of a host, their health, '
        'and which ARQs, instances and projects use them',
        _show_topology,
    )
    command.add_argument('of_host', metavar='HOST')
    command.add_argument(
        '--format',
        choices=list(_TOPOLOGY_FORMATS),
        default='tree',
        help='svg is a picture for a document; default: tree',
    )


def _show_topology(conf: cfg.ConfigOpts) -> int:
    with database.open_database(conf) as db:
        topology = db.read(read_host_topology, conf.command.of_host)
    print(_TOPOLOGY_FORMATS[conf.command.format](topology))
    return 0
