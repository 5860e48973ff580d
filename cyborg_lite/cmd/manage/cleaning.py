# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage cleaning``: units that are withheld until they are clean."""

from typing import Final

from oslo_config import cfg

from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.json_output import print_records
from cyborg_lite.cmd.support.parsers import Parsers, add_command, add_group
from cyborg_lite.cmd.support.text_table import Columns
from cyborg_lite.db.devices import cleanings
from cyborg_lite.model.devices.cleaning import OPERATOR_STATES

_COLUMNS: Final[Columns] = {
    'HOST': 'hostname',
    'DEVICE': 'device_uuid',
    'UNIT': 'unit',
    'STATE': 'state',
    'STEP': 'progress',
    'SINCE': lambda unit: unit.since.isoformat(sep=' ', timespec='seconds'),
    'REASON': 'reason',
}


def add_parsers(parsers: Parsers) -> None:
    commands = add_group(parsers, 'cleaning', 'list unclean units')
    add_command(
        commands,
        'list',
        'list the units that are not clean; the exit status is 1 if one waits for an '
        'operator',
        _list,
        has_table=True,
    )


def _list(conf: cfg.ConfigOpts) -> int:
    with database.open_database(conf) as db:
        units = db.read(cleanings.list_unclean_units)
    print_records(conf, units, _COLUMNS, 'All units are clean.')
    return int(any(unit.state in OPERATOR_STATES for unit in units))
