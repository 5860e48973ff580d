# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage cleaning``: units that are withheld until they are clean."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from oslo_config import cfg

from cyborg_lite.cmd import database
from cyborg_lite.cmd.parsers import add_command, add_group
from cyborg_lite.cmd.text_table import format_table
from cyborg_lite.db import cleanings
from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model.cleaning import (
    MAX_ACTOR,
    OPERATOR_STATES,
    UncleanUnit,
    UnitSelection,
)
from cyborg_lite.model.text import format_count, is_storable

_REASON_WIDTH: Final = 60  # characters in the table; JSON has the whole text


# Any, here and below: the parsers of argparse have no public type.
def add_parsers(parsers: Any) -> None:
    """Add ``cleaning list``, ``cleaning retry`` and ``cleaning accept``."""
    commands = add_group(parsers, 'cleaning', 'list unclean units, or decide on them')
    listing = add_command(
        commands,
        'list',
        'list the units that are not clean; the exit status is 1 if one waits for an '
        'operator',
    )
    listing.add_argument('--format', choices=['table', 'json'], default='table')
    listing.set_defaults(run=_list)
    retry = add_command(
        commands, 'retry', 'clean units again that wait for an operator'
    )
    _add_selection(retry)
    retry.set_defaults(run=_retry)
    accept = add_command(
        commands,
        'accept',
        'declare units clean that wait for an operator; the next instance can read '
        'what the last one left',
    )
    _add_selection(accept)
    accept.set_defaults(run=_accept)


def _add_selection(parser: Any) -> None:
    parser.add_argument('device', metavar='DEVICE', help='uuid of the device')
    parser.add_argument(
        '--unit',
        default='',
        help='unit as listed, such as 0000:c2:00.0; default: all units of the device',
    )
    # The name `name` is that of the command.
    parser.add_argument(
        '--name',
        dest='operator',
        required=True,
        help='your name, which the record of the clean shows',
    )


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


def _retry(conf: cfg.ConfigOpts) -> int:
    selection, name = _read_decision(conf)
    with database.open_database(conf) as db:
        number = db.write(cleanings.retry_cleaning, selection, name)
    units = format_count(number, 'unit')
    print(f'Device {selection.device_uuid}: cleaning of {units} starts again.')
    return 0


def _accept(conf: cfg.ConfigOpts) -> int:
    selection, name = _read_decision(conf)
    with database.open_database(conf) as db:
        number = db.write(cleanings.accept_units, selection, name)
    units = format_count(number, 'unit')
    print(f'Device {selection.device_uuid}: {name} accepted {units}.')
    return 0


def _read_decision(conf: cfg.ConfigOpts) -> tuple[UnitSelection, str]:
    """Return the selected units, and the name of the operator.

    :raises InvalidInput: the name is empty or too long
    """
    name = conf.command.operator.strip()
    if not 1 <= len(name) <= MAX_ACTOR or not is_storable(name):
        raise InvalidInput(reason=f'--name must have 1 to {MAX_ACTOR} characters.')
    return UnitSelection(conf.command.device, conf.command.unit), name
