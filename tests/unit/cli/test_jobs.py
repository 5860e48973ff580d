# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands on jobs."""

import dataclasses
from datetime import UTC, datetime

import pytest
from osc_lib import exceptions

from cyborg_lite.cli.jobs import measure_queued_job
from cyborg_lite.cli.rest import AcceleratorApi
from cyborg_lite.model.bitstreams.program_jobs import (
    ProgramJob,
    ProgramState,
    ProgramStep,
)
from cyborg_lite.model.jobs import JobState
from tests.builders.job_records import add_job_row
from tests.builders.patches import IMAGE
from tests.builders.service_rows import record_heartbeat
from tests.support.api.command_line import WsgiAdapter, read_json, run_command
from tests.support.api.conversation import Client

JOB = '9c2a477a-d3d4-426a-9e9c-b2660917780e'


@pytest.fixture
def job(client: Client) -> str:
    """Have the conductor show a programming job; return its uuid."""
    states = ProgramState.RUNNING, ProgramStep.ACCEPTED
    at = datetime(2026, 11, 21, tzinfo=UTC)
    job = ProgramJob(JOB, IMAGE, IMAGE, *states, '', at)
    client.conductor.answers['show_program_job'] = job
    return JOB


def end(client: Client, job: str, state: ProgramState, reason: str = '') -> None:
    running = client.conductor.answers['show_program_job']
    assert isinstance(running, ProgramJob)
    client.conductor.answers['show_program_job'] = dataclasses.replace(
        running, state=state, step=ProgramStep.LOADED, reason=reason
    )


def test_show_has_progress(client: Client, job: str) -> None:
    row = read_json(client, 'job show', job)
    assert (row['uuid'], row['progress'], row['state']) == (job, 0, 'running')


def test_show_waits_for_end(client: Client, job: str) -> None:
    end(client, job, ProgramState.DONE)
    result = run_command(client, 'job show', job, '--wait', '-f', 'json')
    assert (result.json['state'], result.error) == ('done', '100% loaded\n')


def test_show_of_failed_job_fails_after_wait(client: Client, job: str) -> None:
    end(client, job, ProgramState.FAILED, 'No such region.')
    with pytest.raises(exceptions.CommandError, match='failed: No such region'):
        run_command(client, 'job show', job, '--wait')
    assert read_json(client, 'job show', job)['reason'] == 'No such region.'


def add_failed(client: Client) -> str:
    """Add a failed job; return its uuid."""
    return add_job_row(
        client.conductor.database,
        kind='placement-sync',
        state=JobState.FAILED,
        payload={'hostname': 'c1'},
        last_error='No answer.',
    )


def test_list_filters_by_kind_and_state(client: Client) -> None:
    failed = add_failed(client)
    bind = add_job_row(client.conductor.database, kind='bind')
    (row,) = read_json(client, 'job list', '--state', 'failed')
    assert (row['UUID'], row['Subject'], row['Reason']) == (
        failed,
        'host c1',
        'No answer.',
    )
    (row,) = read_json(client, 'job list', '--kind', 'bind')
    assert row['UUID'] == bind


def test_retry_and_cancel_change_jobs(client: Client) -> None:
    failed = add_failed(client)
    run_command(client, 'job retry', failed)
    assert read_json(client, 'job show', failed)['state'] == 'waiting'
    run_command(client, 'job cancel', failed)
    assert read_json(client, 'job show', failed)['is_cancelled'] is True
    with pytest.raises(exceptions.NotFound):
        run_command(client, 'job cancel', IMAGE)


def test_create_requests_work_on_host(client: Client) -> None:
    record_heartbeat(client.conductor.database, 'c1')
    created = read_json(client, 'job create', 'refresh', '--host', 'c1')
    assert (created['kind'], created['subject']) == ('placement-sync', 'host c1')
    with pytest.raises(exceptions.CommandError, match='requires a hostname'):
        run_command(client, 'job create', 'reconcile')


def test_wait_for_failed_job_of_any_type_fails(client: Client) -> None:
    with pytest.raises(exceptions.CommandError, match='failed: No answer'):
        run_command(client, 'job show', add_failed(client), '--wait')


def test_progress_of_deleted_job_is_complete(client: Client) -> None:
    api = AcceleratorApi(WsgiAdapter(client))
    assert measure_queued_job(api, f'/jobs/{IMAGE}').is_finished
    failed = add_failed(client)
    run_command(client, 'job retry', failed)
    progress = measure_queued_job(api, f'/jobs/{failed}')
    assert (progress.is_finished, progress.text) == (False, 'waiting (No answer.)')
