# SPDX-License-Identifier: Apache-2.0
"""Commands ``openstack accelerator job ...``: work that the service continues."""

import argparse
from collections.abc import Mapping
from typing import Any, Final

from osc_lib import exceptions

from cyborg_lite.cli import waiting
from cyborg_lite.cli.columns import build_fields, build_rows
from cyborg_lite.cli.commands import ApiCommand, ListCommand, ShowCommand, Table
from cyborg_lite.cli.rest import AcceleratorApi, quote_path
from cyborg_lite.cli.waiting import Progress

_COLUMNS: Final = {
    'uuid': 'UUID',
    'kind': 'Kind',
    'state': 'State',
    'subject': 'Subject',
    'age': 'Age [s]',
    'attempts': 'Attempts',
    'reason': 'Reason',
}
_STATES: Final = ('waiting', 'running', 'failed')
_KINDS: Final = ('audit', 'reconcile', 'refresh')


def measure_job(job: Mapping[str, Any]) -> Progress:
    """Return the progress of a programming job."""
    failure = ''
    if job['state'] == 'failed':
        failure = f'Job {job["uuid"]} failed: {job["reason"] or "no reason recorded"}'
    reason = f' ({job["reason"]})' if job['reason'] else ''
    text = f'{job["step"]}{reason}'
    return Progress(job['progress'], text, job['state'] == 'done', failure)


def measure_queued_job(api: AcceleratorApi, path: str) -> Progress:
    """Return the progress of a job of any type. The service deletes completed jobs.

    :param path: of the job in the API
    """
    try:
        job = api.call('GET', path)
    except exceptions.NotFound:
        return Progress(100, 'completed', is_finished=True)
    if 'progress' in job:
        return measure_job(job)
    failure = ''
    if job['state'] == 'failed':
        failure = f'Job {job["uuid"]} failed: {job["reason"] or "no reason recorded"}'
    reason = f' ({job["reason"]})' if job['reason'] else ''
    percent = 50 if job['state'] == 'running' else 0
    return Progress(percent, f'{job["state"]}{reason}', failure=failure)


class ListJobs(ListCommand):
    """List unfinished and failed jobs, oldest first."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('--kind', metavar='<kind>', help='Only this type')
        parser.add_argument('--state', choices=_STATES, help='Only this state')

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        query = {'kind': parsed_args.kind, 'state': parsed_args.state}
        jobs = self.api.list_all('/jobs', 'jobs', query)
        rows = [{**job, 'age': round(job['age'])} for job in jobs]
        return build_rows(_COLUMNS, rows)


class CreateJob(ShowCommand):
    """Request an audit, or a reconcile or refresh of a host."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            'kind',
            choices=_KINDS,
            help='audit: find ARQs and handles that nothing needs, and release them if '
            'the option reap_orphans allows it; reconcile: correct the providers of a '
            'host in Placement; refresh: have the agent of a host report all '
            'devices again, and reconcile',
        )
        parser.add_argument(
            '--host', metavar='<host>', help='Host of a reconcile or refresh'
        )
        waiting.add_wait_options(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Write the job and show it; with ``--wait`` return after its end."""
        host = {'hostname': parsed_args.host} if parsed_args.host else {}
        body = {'kind': parsed_args.kind, **host}
        job = self.api.call('POST', '/jobs', body=body)
        if parsed_args.wait:
            path = f'/jobs/{job["uuid"]}'
            waiting.wait_until_finished(
                lambda: measure_queued_job(self.api, path),
                self.progress_stream,
                parsed_args.timeout,
            )
            job['state'] = 'completed'
        return build_fields(job)


class _ChangeJobs(ApiCommand):
    """Base of the commands that change jobs."""

    action: str

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('jobs', metavar='<job>', nargs='+', help='Uuid of a job')

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Change the jobs in their order; stop at the first error."""
        for uuid in parsed_args.jobs:
            path = f'/jobs/{quote_path(uuid)}/{self.action}'
            self.api.call('POST', path)


class RetryJobs(_ChangeJobs):
    """Run failed or waiting jobs now."""

    action = 'retry'


class CancelJobs(_ChangeJobs):
    """Cancel jobs. A conductor reverts their incomplete changes."""

    action = 'cancel'


class ShowJob(ShowCommand):
    """Show a job."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('job', metavar='<job>', help='Uuid of the job')
        waiting.add_wait_options(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Show the job; with ``--wait`` after its end."""
        path = f'/jobs/{quote_path(parsed_args.job)}'
        if parsed_args.wait:
            waiting.wait_until_finished(
                lambda: measure_queued_job(self.api, path),
                self.progress_stream,
                parsed_args.timeout,
            )
        return build_fields(self.api.call('GET', path))
