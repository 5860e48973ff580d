# SPDX-License-Identifier: Apache-2.0
"""``cyborg-lite-manage jobs``: list, retry and cancel jobs."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from oslo_config import cfg

from cyborg_lite.cmd import database
from cyborg_lite.cmd.parsers import add_command, add_group
from cyborg_lite.cmd.text_table import format_table
from cyborg_lite.db.jobs import administration
from cyborg_lite.model.jobs import JobRecord, JobState, JobType, describe_payload

_ERROR_WIDTH: Final = 60  # characters in the table; JSON has the whole text


# Any, here and below: the parsers of argparse have no public type.
def add_parsers(parsers: Any) -> None:
    """Add the commands ``jobs list``, ``jobs retry`` and ``jobs cancel``."""
    commands = add_group(parsers, 'jobs', 'list, retry or cancel jobs')
    listing = add_command(
        commands, 'list', 'list unfinished jobs; the exit status is 1 if one has failed'
    )
    listing.add_argument(
        '--kind', action='append', default=[], help=f'{", ".join(JobType)}; repeatable'
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
    retry = add_command(commands, 'retry', 'run a failed or waiting job now')
    retry.add_argument('uuid')
    retry.set_defaults(run=_retry)
    cancel = add_command(
        commands, 'cancel', 'cancel a job: a bind fails, a release is kept as failed'
    )
    cancel.add_argument('uuid')
    cancel.set_defaults(run=_cancel)


def _list(conf: cfg.ConfigOpts) -> int:
    command = conf.command
    with database.open_database(conf) as db:
        jobs = db.read(administration.list_jobs, command.kind, command.state)
    if command.format == 'json':
        print(json.dumps([_document(job) for job in jobs], indent=2))
    else:
        print(format_table(_rows(jobs), 'No unfinished or failed job: nothing to do.'))
    return int(any(job.state is JobState.FAILED for job in jobs))


def _document(job: JobRecord) -> dict[str, object]:
    """Return the JSON object; its keys are stable."""
    return {
        'kind' if name == 'type' else name: value
        for name, value in dataclasses.asdict(job).items()
    }


def _rows(jobs: Iterable[JobRecord]) -> list[Sequence[object]]:
    rows: list[Sequence[object]] = [
        ('UUID', 'KIND', 'STATE', 'ABOUT', 'AGE', 'ATTEMPTS', 'LAST ERROR')
    ]
    for job in jobs:
        state = f'{job.state}, cancelled' if job.cancelled else job.state
        error = job.last_error
        if len(error) > _ERROR_WIDTH:
            error = f'{error[: _ERROR_WIDTH - 3]}...'
        age = f'{job.age:.0f} s'
        rows.append(
            (job.uuid, job.type, state, _about(job), age, job.attempts, error or '-')
        )
    return rows


def _about(job: JobRecord) -> str:
    """Return the object of the job, from its payload."""
    return describe_payload(job.payload) or job.key or '-'


def _retry(conf: cfg.ConfigOpts) -> int:
    uuid = conf.command.uuid
    with database.open_database(conf) as db:
        is_queued = db.write(administration.retry_job, uuid)
    if is_queued:
        print(f'Job {uuid} is queued and runs on the next free worker.')
    else:
        print(f'Job {uuid} was removed, because a newer job replaces it.')
    return 0


def _cancel(conf: cfg.ConfigOpts) -> int:
    uuid = conf.command.uuid
    with database.open_database(conf) as db:
        db.write(administration.cancel_job, uuid)
    print(f'Job {uuid} is cancelled. A conductor reverts its incomplete changes.')
    return 0
