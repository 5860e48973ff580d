# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands on jobs."""

import dataclasses

import pytest
from osc_lib import exceptions

from cyborg_lite.cli.jobs import measure_queued_job
from cyborg_lite.cli.rest import AcceleratorApi
from cyborg_lite.model.jobs import JobState
from cyborg_lite.model.program_jobs import ProgramState, ProgramStep
from cyborg_lite.rpc.context import RequestContext
from tests.builders.job_records import build_job_record
from tests.builders.patches import IMAGE
from tests.support.api.command_line import WsgiAdapter, read_json, run_command
from tests.support.api.conversation import Client, add_deployable


@pytest.fixture
def job(client: Client) -> str:
    """Start a programming job; return its uuid."""
    uuid = add_deployable(client.conductor).uuid
    context = RequestContext(is_admin=True)
    return client.conductor.start_programming(context, uuid, IMAGE).uuid


def end(client: Client, job: str, state: ProgramState, reason: str = '') -> None:
    client.conductor.jobs[job] = dataclasses.replace(
        client.conductor.jobs[job], state=state, step=ProgramStep.LOADED, reason=reason
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
    failed = build_job_record(
        state=JobState.FAILED, payload={'host': 'c1'}, last_error='No answer.'
    )
    client.conductor.queued_jobs[failed.uuid] = failed
    return failed.uuid


def test_list_filters_by_kind_and_state(client: Client) -> None:
    failed = add_failed(client)
    bind = build_job_record(type='bind')
    client.conductor.queued_jobs[bind.uuid] = bind
    (row,) = read_json(client, 'job list', '--state', 'failed')
    assert (row['UUID'], row['Subject'], row['Reason']) == (
        failed,
        'host c1',
        'No answer.',
    )
    (row,) = read_json(client, 'job list', '--kind', 'bind')
    assert row['UUID'] == bind.uuid


def test_retry_and_cancel_change_jobs(client: Client) -> None:
    failed = add_failed(client)
    run_command(client, 'job retry', failed)
    assert read_json(client, 'job show', failed)['state'] == 'waiting'
    run_command(client, 'job cancel', failed)
    assert read_json(client, 'job show', failed)['is_cancelled'] is True
    with pytest.raises(exceptions.NotFound):
        run_command(client, 'job cancel', IMAGE)


def test_create_requests_work_on_host(client: Client) -> None:
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
