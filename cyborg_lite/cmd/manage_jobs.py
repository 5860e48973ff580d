# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage jobs``: what the conductors have to do, and a hand in it."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from oslo_config import cfg

from cyborg_lite.cmd import database
from cyborg_lite.cmd.text_table import table
from cyborg_lite.db import job_table
from cyborg_lite.model.jobs import JobRecord, JobState, Kind

_LONGEST_ERROR: Final = 60  # of the table; JSON has all of it


# Any, here and below: the parsers of argparse have no public type.
def add_parsers(parsers: Any) -> None:
    group = parsers.add_parser('jobs', help='list, retry or cancel jobs')
    commands = group.add_subparsers(title='commands', required=True, metavar='COMMAND')
    listing = commands.add_parser(
        'list', help='jobs that are not done; exit status 1 if one has failed'
    )
    listing.add_argument(
        '--kind', action='append', default=[], help=f'{", ".join(Kind)}; repeatable'
    )
    listing.add_argument(
        '--state',
        action='append',
        default=[],
        choices=[state.value for state in JobState],
        help='repeatable',
    )
    listing.add_argument('--format', choices=['table', 'json'], default='table')
    listing.set_defaults(run=_list)
    retry = commands.add_parser('retry', help='run a failed or waiting job now')
    retry.add_argument('uuid')
    retry.set_defaults(run=_retry)
    cancel = commands.add_parser(
        'cancel', help='have a job given up: a bind fails, a release stays as failed'
    )
    cancel.add_argument('uuid')
    cancel.set_defaults(run=_cancel)


def _list(conf: cfg.ConfigOpts) -> int:
    asked = conf.command
    with database.opened(conf) as opened:
        found = opened.read(job_table.listed, asked.kind, asked.state)
    if asked.format == 'json':
        print(json.dumps([dataclasses.asdict(job) for job in found], indent=2))
    else:
        print(table(_rows(found)))
    return int(any(job.state is JobState.FAILED for job in found))


def _rows(found: Iterable[JobRecord]) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = [
        ('UUID', 'KIND', 'STATE', 'ABOUT', 'AGE', 'ATTEMPTS', 'LAST ERROR')
    ]
    for job in found:
        state = f'{job.state}, cancelled' if job.cancelled else job.state
        error = job.last_error
        if len(error) > _LONGEST_ERROR:
            error = f'{error[: _LONGEST_ERROR - 3]}...'
        age = f'{job.age:.0f} s'
        rows.append(
            (job.uuid, job.kind, state, _about(job), age, job.attempts, error or '-')
        )
    return rows


def _about(job: JobRecord) -> str:
    """What of the payload says it best."""
    for field in ('instance', 'host', 'deployable', 'handle'):
        if field in job.payload:
            return f'{field} {job.payload[field]}'
    return job.key or '-'


def _retry(conf: cfg.ConfigOpts) -> int:
    uuid = conf.command.uuid
    with database.opened(conf) as opened:
        kept = opened.write(job_table.retry, uuid)
    if kept:
        print(f'Job {uuid} runs as soon as a conductor is free.')
    else:
        print(f'Job {uuid} is forgotten: a later one does the same.')
    return 0


def _cancel(conf: cfg.ConfigOpts) -> int:
    uuid = conf.command.uuid
    with database.opened(conf) as opened:
        opened.write(job_table.cancel, uuid)
    print(f'Job {uuid} is cancelled; a conductor winds up what it has begun.')
    return 0
