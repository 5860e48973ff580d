# SPDX-License-Identifier: Apache-2.0
"""Entry point of cyborg-lite-status: state of the daemons, and upgrade checks."""

from cyborg_lite import runtime  # isort: skip  # must be imported first: it may monkey-patch

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Final

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from cyborg_lite import conf as configuration
from cyborg_lite.cmd.status.upgrade_checks import Checks
from cyborg_lite.cmd.support import database
from cyborg_lite.cmd.support.json_output import is_json, run_command
from cyborg_lite.cmd.support.one_line_errors import one_line_errors
from cyborg_lite.cmd.support.parsers import Parsers, add_command, add_plain_command
from cyborg_lite.cmd.support.text_table import format_table
from cyborg_lite.db.attention import list_attention
from cyborg_lite.db.core import clock
from cyborg_lite.db.hosts import services
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.attention import AttentionItem, AttentionKind, Severity
from cyborg_lite.model.hosts.services import Service
from cyborg_lite.model.jobs import JobCount, JobState

__all__ = ['main', 'runtime']

PROG: Final = 'cyborg-lite-status'
_DESCRIPTION: Final = (
    'Show what waits for an operator, and the daemons and jobs, or check whether '
    'it can be upgraded.'
)

# Number of missed heartbeats after which a daemon is shown as down.
_MISSED_HEARTBEATS: Final = 3
_NO_JOB: Final = 'none'
_NOTHING: Final = 'Nothing waits for an operator.'
_NEVER: Final = 'No daemon has ever started. Start cyborg-lite-conductor.'
_CONDUCTOR: Final = 'cyborg-lite-conductor'
_CONDUCTOR_HEARTBEAT: Final = 30  # seconds; for agents the interval is an option


@one_line_errors(PROG, 1)
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    :returns: 0 if there is no problem, 1 if there is one or the state is unknown. As in
        other OpenStack services, ``upgrade check`` returns 0 for success, 1 for a
        warning and 2 for a failure.
    """
    conf = configuration.parse(
        arguments, PROG, command_line=[_COMMANDS], description=_DESCRIPTION
    )
    if conf.command.name == 'upgrade':
        # The library reads the option --json from there.
        upgradecheck.CONF = conf
        return int(Checks(conf).check())
    run = _check_conductor if conf.command.name == 'conductor' else _show
    return run_command(conf, lambda: run(conf))


def _check_conductor(conf: cfg.ConfigOpts) -> int:
    with database.open_database(conf) as db:
        daemons = db.read(services.list_services)
        current = db.read(clock.read_time_before, 0)
        items = db.read(list_attention)
    ages = [
        _heartbeat_age(daemon, current)
        for daemon in daemons
        if (daemon.binary, daemon.host) == (_CONDUCTOR, conf.host)
    ]
    if not ages:
        print(f'No conductor has ever started on host {conf.host}.')
        return 1
    faults = _find_faults(items)
    is_down = min(ages) > _MISSED_HEARTBEATS * _CONDUCTOR_HEARTBEAT
    fault = '' if is_down else faults.get((_CONDUCTOR, conf.host), '')
    state = 'down' if is_down else 'not ready' if fault else 'up'
    print(f'{_CONDUCTOR} on {conf.host}: {state}, last heartbeat {min(ages):.0f} s ago')
    if fault:
        print(fault)
    return int(is_down or bool(fault))


def _show(conf: cfg.ConfigOpts) -> int:
    with database.open_database(conf) as db:
        daemons = db.read(services.list_services)
        current = db.read(clock.read_time_before, 0)
        counts = db.read(queue.count_jobs)
        items = db.read(list_attention)
    down_after = _MISSED_HEARTBEATS * max(
        _CONDUCTOR_HEARTBEAT, conf.agent.heartbeat_interval
    )
    ages = {daemon.uuid: _heartbeat_age(daemon, current) for daemon in daemons}
    down = {uuid for uuid, age in ages.items() if age > down_after}
    states = {
        daemon.uuid: 'not ready'
        for daemon in daemons
        if (daemon.binary, daemon.host) in _find_faults(items)
    } | dict.fromkeys(down, 'down')
    tables = _daemon_rows(daemons, ages, states), _job_rows(counts)
    if is_json(conf):
        daemon_rows, job_rows = map(_name_columns, tables)
        job_rows = [row for row in job_rows if row['jobs'] != _NO_JOB]
        attention = [
            {
                **asdict(item),
                'severity': item.severity,
                'since': item.since and item.since.isoformat(),
                'command': item.command,
            }
            for item in items
        ]
        document = {'attention': attention, 'daemons': daemon_rows, 'jobs': job_rows}
        print(json.dumps(document, indent=2))
    else:
        none = _NEVER if not daemons else _NOTHING
        paragraphs = [*map(_describe, items)] or [none]
        print('\n\n'.join([*paragraphs, *map(format_table, tables)]))
    is_urgent = any(item.severity is not Severity.INFO for item in items)
    return int(bool(down or is_urgent or not daemons))


def _describe(item: AttentionItem) -> str:
    """Return an item with its reason, and a line with the command if there is one."""
    since = item.since and f' since {item.since.isoformat(" ", "seconds")}'
    place = item.hostname and f' on host {item.hostname}'
    return (
        f'{item.severity.upper()} {item.kind}{place}{since or ""}: '
        f'{item.subject_type} {item.subject_name or item.subject_id}\n'
        f'  {item.reason}' + (item.command and f'\n  Run: {item.command}')
    )


def _find_faults(items: Iterable[AttentionItem]) -> dict[tuple[str, str], str]:
    """Return why daemons are not ready, by binary and host."""
    return {
        (item.subject_name, item.hostname): item.reason
        for item in items
        if item.kind is AttentionKind.NOT_READY
    }


def _name_columns(rows: Sequence[Sequence[object]]) -> list[dict[str, object]]:
    """Return the rows as JSON objects, whose keys are the headings."""
    names = [str(name).lower().replace(' ', '_') for name in rows[0]]
    return [dict(zip(names, row, strict=True)) for row in rows[1:]]


def _heartbeat_age(daemon: Service, current: datetime) -> float:
    """Return the seconds since the last heartbeat, by the clock that writes them."""
    return (current - daemon.heartbeat_at).total_seconds()


def _daemon_rows(
    daemons: Iterable[Service], ages: Mapping[str, float], states: Mapping[str, str]
) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = [
        ('DAEMON', 'HOST', 'VERSION', 'STARTED', 'LAST HEARTBEAT', 'STATE')
    ]
    for daemon in sorted(daemons, key=lambda daemon: (daemon.binary, daemon.host)):
        started = daemon.started_at.isoformat(sep=' ', timespec='seconds')
        heartbeat = f'{ages[daemon.uuid]:.0f} s ago'
        state = states.get(daemon.uuid, 'up')
        subject = daemon.binary, daemon.host, daemon.version
        rows.append((*subject, started, heartbeat, state))
    return rows


def _job_rows(counts: Iterable[JobCount]) -> list[Sequence[object]]:
    number: Counter[tuple[str, JobState]] = Counter()
    for count in counts:
        number[count.type, count.state] += count.count
    kinds = sorted({kind for kind, _state in number})
    heads = [state.upper() for state in JobState]
    rows = [(kind, *(number[kind, state] for state in JobState)) for kind in kinds]
    return [('JOBS', *heads), *(rows or [(_NO_JOB, *('-' for _ in heads))])]


def _add_parsers(parsers: Parsers) -> None:
    parsers.required = False
    add_command(parsers, 'show', 'show daemons and jobs (default)')
    add_command(
        parsers, 'conductor', 'check the conductor of this host; 1 if it is down'
    )
    upgrade = add_plain_command(
        parsers, 'upgrade', 'check whether an upgrade can proceed'
    )
    upgrade.add_argument('check', choices=['check'])
    upgrade.add_argument('--json', action='store_true', help='print JSON')


_COMMANDS: Final = cfg.SubCommandOpt('command', title='commands', handler=_add_parsers)

if __name__ == '__main__':
    sys.exit(main())
