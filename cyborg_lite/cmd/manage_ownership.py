# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage ownership``: who has which card, and how to change that."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from oslo_config import cfg

from cyborg_lite.cmd import database
from cyborg_lite.cmd.text_table import table
from cyborg_lite.db import owners
from cyborg_lite.model.owners import OwnedDevice, lines_for_nova, lines_for_us


# Any: the parsers of argparse have no public type.
def add_parsers(parsers: Any) -> None:
    parser = parsers.add_parser(
        'ownership', help='who has which device; exit status 1 if two have one'
    )
    # Not `host`: that is an option of ours, and the library refuses it twice.
    parser.add_argument(
        '--host', dest='of_host', help='of that host alone, with configuration lines'
    )
    parser.add_argument('--format', choices=['table', 'json'], default='table')
    parser.set_defaults(run=_show)


def _show(conf: cfg.ConfigOpts) -> int:
    asked = conf.command
    with database.opened(conf) as opened:
        devices = opened.read(owners.owned, asked.of_host)
    if asked.format == 'json':
        print(json.dumps([_document(device) for device in devices], indent=2))
    elif devices:
        print(table(_rows(devices)))
        shown = devices if asked.of_host else [one for one in devices if one.conflict]
        _print_lines(shown)
    else:
        where = f'host {asked.of_host}' if asked.of_host else 'any host'
        print(f'No agent has reported a device of {where}.')
    return int(any(device.conflict for device in devices))


def _rows(devices: Iterable[OwnedDevice]) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = [
        ('HOST', 'ADDRESS', 'DEVICE', 'DRIVER', 'OWNER', 'WHY')
    ]
    for one in devices:
        about = one.hostname, one.address, one.model, one.driver
        rows.append((*about, one.owner, one.why or '-'))
    return rows


def _print_lines(devices: Iterable[OwnedDevice]) -> None:
    for host, those in groupby(devices, key=lambda device: device.hostname):
        for device in those:
            print(f'\nTo give {device.address} of {host} to Nova alone:')
            _print_indented(lines_for_nova(device))
            print(f'To give {device.address} of {host} to this service alone:')
            _print_indented(lines_for_us(device))


def _print_indented(lines: Iterable[tuple[str, str]]) -> None:
    for file, line in lines:
        print(f'  {file}: {line}')


def _document(device: OwnedDevice) -> dict[str, object]:
    return {
        **dataclasses.asdict(device),
        'owner': device.owner,
        'for_nova': [list(line) for line in lines_for_nova(device)],
        'for_this_service': [list(line) for line in lines_for_us(device)],
    }
