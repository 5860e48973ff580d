# SPDX-License-Identifier: Apache-2.0
"""cyborg-lite-status: how the daemons are, and whether an upgrade may go on."""

from cyborg_lite import runtime  # isort: skip  # first of all: it may patch

import sys
from argparse import _SubParsersAction
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from cyborg_lite import conf as configuration
from cyborg_lite.cmd import database
from cyborg_lite.cmd.text_table import table
from cyborg_lite.cmd.upgrade_checks import Checks
from cyborg_lite.db import conflicts, job_table, jobs, services
from cyborg_lite.exceptions import CyborgError
from cyborg_lite.model.jobs import JobCount, JobState, Kind
from cyborg_lite.model.services import Service

__all__ = ['main', 'runtime']

PROG: Final = 'cyborg-lite-status'

# A daemon that missed so many heartbeats is not merely late.
_MISSED: Final = 3
_CONDUCTOR_HEARTBEAT: Final = 30  # seconds; that of agents is an option


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0 all is well, 1 something is not or could not be found out.

    ``upgrade check`` has the statuses that operators know from other services:
    0 success, 1 warning, 2 failure.
    """
    given = sys.argv[1:] if arguments is None else arguments
    conf = configuration.parse(given, PROG, command_line=[_COMMANDS])
    if conf.command.name == 'upgrade':
        # Where the library looks whether --json was given.
        upgradecheck.CONF = conf
        return int(Checks(conf).check())
    try:
        return _show(conf)
    except CyborgError as error:
        print(f'{PROG}: {error.text} {error.advice}', file=sys.stderr)
        return 1


def _show(conf: cfg.ConfigOpts) -> int:
    opened = database.configured(conf)
    try:
        daemons = opened.read(services.listed)
        counts = opened.read(jobs.count)
        contested = opened.read(conflicts.listed)
        late = opened.read(job_table.listed, [Kind.PLACEMENT_SYNC])
    finally:
        opened.close()
    patience = _MISSED * max(_CONDUCTOR_HEARTBEAT, conf.agent.heartbeat_interval)
    silent = [daemon for daemon in daemons if _age(daemon) > patience]
    failed = sum(count.count for count in counts if count.state is JobState.FAILED)
    print(table(_daemon_rows(daemons, silent)))
    print()
    print(table(_job_rows(counts)))
    if not daemons:
        print('\nNo daemon has ever been seen: start cyborg-lite-conductor.')
    if failed:
        print('\nFailed jobs are kept; the log of the conductor says why they failed.')
    behind = [job for job in late if job.last_error]
    for job in behind:
        host = job.payload.get('host')
        print(f'\nPlacement does not follow host {host}: {job.last_error}')
    for device in contested:
        print(
            f'\nDevice {device.address} of host {device.hostname} is not offered. '
            f'{device.reason}'
        )
    return int(bool(not daemons or silent or failed or behind or contested))


def _age(daemon: Service) -> float:
    """Seconds since its last sign of life."""
    return (datetime.now(UTC) - daemon.heartbeat_at).total_seconds()


def _daemon_rows(
    daemons: Iterable[Service], silent: Iterable[Service]
) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = [
        ('DAEMON', 'HOST', 'VERSION', 'STARTED', 'LAST HEARTBEAT', 'STATE')
    ]
    for daemon in sorted(daemons, key=lambda daemon: (daemon.binary, daemon.host)):
        started = daemon.started_at.isoformat(sep=' ', timespec='seconds')
        seen = f'{_age(daemon):.0f} s ago'
        state = 'silent' if daemon in silent else 'up'
        rows.append((daemon.binary, daemon.host, daemon.version, started, seen, state))
    return rows


def _job_rows(counts: Iterable[JobCount]) -> list[Sequence[object]]:
    number: Counter[tuple[str, JobState]] = Counter()
    for count in counts:
        number[count.kind, count.state] += count.count
    kinds = sorted({kind for kind, _state in number})
    heads = [state.upper() for state in JobState]
    rows = [(kind, *(number[kind, state] for state in JobState)) for kind in kinds]
    return [('JOBS', *heads), *(rows or [('none', *('-' for _ in heads))])]


# Any: the parsers of argparse, whose type takes a parameter that is not public.
def _add_parsers(parsers: '_SubParsersAction[Any]') -> None:
    parsers.required = False
    parsers.add_parser('show', help='daemons and jobs; this is the default')
    upgrade = parsers.add_parser('upgrade', help='look before an upgrade goes on')
    upgrade.add_argument('check', choices=['check'])
    upgrade.add_argument('--json', action='store_true', help='for programs')


_COMMANDS: Final = cfg.SubCommandOpt('command', title='commands', handler=_add_parsers)

if __name__ == '__main__':
    sys.exit(main())
