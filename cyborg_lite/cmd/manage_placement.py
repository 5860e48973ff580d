# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage placement audit``: what differs there, and what is done."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from oslo_config import cfg

from cyborg_lite.clients.placement import Placement
from cyborg_lite.cmd import database
from cyborg_lite.cmd.text_table import table
from cyborg_lite.conductor.placement_sync import PlacementSync, SyncResult
from cyborg_lite.db import owners
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.providers import OWNER

_PLANNED: Final = 'to be repaired'
_DONE: Final = 'repaired'
_LEFT: Final = 'left as it is'
_UNKNOWN: Final = 'cannot be told'
_NOT_OURS: Final = 'left: no agent of the host is known; --host has it removed'


@dataclass(frozen=True, slots=True)
class Line:
    """What is wrong with one provider, and what comes of it."""

    host: str
    provider: str  # empty: of the host as a whole
    uuid: str
    what: str
    outcome: str


# Any: the parsers of argparse have no public type.
def add_parsers(parsers: Any) -> None:
    group = parsers.add_parser('placement', help='compare with Placement')
    commands = group.add_subparsers(title='commands', required=True, metavar='COMMAND')
    audit = commands.add_parser(
        'audit', help='what differs there; exit status 1 if something does'
    )
    audit.add_argument(
        '--apply', action='store_true', help='repair what is ours, not only say so'
    )
    # Not `host`: that is an option of ours, and the library refuses it twice.
    audit.add_argument(
        '--host',
        dest='of_host',
        action='append',
        help='repeatable; default: all',
    )
    audit.add_argument('--format', choices=['table', 'json'], default='table')
    audit.set_defaults(run=_audit)


def _audit(conf: cfg.ConfigOpts) -> int:
    asked = conf.command
    with database.opened(conf) as opened:
        placement = Placement.configured(conf)
        sync = PlacementSync(opened, placement, conf.conductor.hosts_without_compute)
        hosts = asked.of_host or opened.read(owners.hosts)
        lines = [line for host in hosts for line in _lines(sync, host, asked.apply)]
        if not asked.of_host:
            lines += _left_over(sync, placement, hosts)
    if asked.format == 'json':
        print(json.dumps([asdict(line) for line in lines], indent=2))
    elif lines:
        print(table(_rows(lines)))
    else:
        print(f'Placement is as it should be, for {len(hosts)} hosts.')
    outcomes = {line.outcome for line in lines}
    if _UNKNOWN in outcomes:
        return 2
    return int(bool(outcomes - {_DONE}))


def _lines(sync: PlacementSync, host: str, apply: bool) -> Iterator[Line]:
    try:
        result = sync.sync(host, deep=True) if apply else sync.rehearse(host)
    except CyborgError as error:
        yield Line(host, '', '', f'{error.text} {error.advice}', _UNKNOWN)
        return
    yield from _of_result(host, result, _DONE if apply else _PLANNED)


def _left_over(
    sync: PlacementSync, placement: Placement, known: Collection[str]
) -> Iterator[Line]:
    """Of hosts that the database does not know, and that another one may."""
    try:
        strangers = sorted(placement.hosts_with(OWNER) - set(known))
    except CyborgError as error:
        yield Line('', '', '', f'{error.text} {error.advice}', _UNKNOWN)
        return
    for host in strangers:
        for line in _lines(sync, host, apply=False):
            yield replace(line, outcome=_NOT_OURS)


def _of_result(host: str, result: SyncResult, outcome: str) -> Iterator[Line]:
    for change in result.changes:
        yield Line(host, change.name, change.uuid, change.what, outcome)
    for problem in result.problems:
        yield Line(host, problem.name, problem.uuid, problem.reason, _LEFT)


def _rows(lines: Iterable[Line]) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = [('HOST', 'PROVIDER', 'OUTCOME', 'WHAT')]
    for line in lines:
        rows.append((line.host, line.provider or '-', line.outcome, line.what))
    return rows
