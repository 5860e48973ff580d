# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage topology``: draws the devices of a host."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Final

from oslo_config import cfg

from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.parsers import Parsers, add_command
from cyborg_lite.db.hosts.host_topology import read_host_topology
from cyborg_lite.model.hosts.topology import HostTopology
from cyborg_lite.rendering.outline import format_tree
from cyborg_lite.rendering.svg import format_svg

_FORMATS: Final[Mapping[str, Callable[[HostTopology], str]]] = {
    'tree': format_tree,
    'svg': format_svg,
    'json': lambda topology: json.dumps(dataclasses.asdict(topology), indent=2),
}


def add_parsers(parsers: Parsers) -> None:
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
        choices=list(_FORMATS),
        default='tree',
        help='svg is a picture for a document; default: tree',
    )


def _show_topology(conf: cfg.ConfigOpts) -> int:
    with database.open_database(conf) as db:
        topology = db.read(read_host_topology, conf.command.of_host)
    print(_FORMATS[conf.command.format](topology))
    return 0
