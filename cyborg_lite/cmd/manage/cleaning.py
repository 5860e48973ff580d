# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage cleaning``: units that are withheld until they are clean."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from oslo_config import cfg

from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.parsers import add_command, add_group
from cyborg_lite.cmd.support.text_table import format_table
from cyborg_lite.db.devices import cleanings
from cyborg_lite.model.devices.cleaning import OPERATOR_STATES, UncleanUnit

_REASON_WIDTH: Final = 60  # characters in the table; JSON has the whole text


# Any, here and below: the parsers of argparse have no public type.
def add_parsers(parsers: Any) -> None:
    commands = add_group(parsers, 'cleaning', 'list unclean units')
    listing = add_command(
        commands,
        'list',
        'list the units that are not clean; the exit status is 1 if one waits for an '
        'operator',
    )
    listing.add_argument('--format', choices=['table', 'json'], default='table')
    listing.set_defaults(run=_list)


def _list(conf: cfg.ConfigOpts) -> int:
    with database.open_database(conf) as db:
        units = db.read(cleanings.list_unclean_units)
    if conf.command.format == 'json':
        print(json.dumps([dataclasses.asdict(unit) for unit in units], indent=2))
    elif units:
        print(format_table(_rows(units)))
    else:
        print('All units are clean.')
    return int(any(unit.state in OPERATOR_STATES for unit in units))


def _rows(units: Iterable[UncleanUnit]) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = [
        ('HOST', 'DEVICE', 'UNIT', 'STATE', 'STEP', 'AGE', 'REASON')
    ]
    for unit in units:
        reason = unit.reason
        if len(reason) > _REASON_WIDTH:
            reason = f'{reason[: _REASON_WIDTH - 3]}...'
        place = unit.hostname, unit.device_uuid, unit.unit, unit.state
        progress = unit.progress or '-', f'{unit.age:.0f} s'
        rows.append((*place, *progress, reason or '-'))
    return rows
