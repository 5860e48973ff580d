# SPDX-License-Identifier: Apache-2.0
"""Tests of the commands on operations."""

import pytest
from osc_lib import exceptions

from cyborg_lite.cli.waiting import measure_operation
from cyborg_lite.db.jobs import operations, queue
from cyborg_lite.model.jobs import NewJob
from cyborg_lite.model.operations import NewOperation, OperationKind, SubjectType
from tests.builders.patches import IMAGE
from tests.builders.rows import OWNER
from tests.builders.service_rows import record_heartbeat
from tests.support.api.command_line import read_json, run_command
from tests.support.api.conversation import Client

NEW = NewOperation(OperationKind.REFRESH, SubjectType.HOST, 'c1')


@pytest.fixture
def failure(client: Client) -> str:
    """Add a failed operation; return its uuid."""
    database = client.conductor.database
    job = NewJob(OperationKind.RECONCILE, {'hostname': 'c1'}, operation=NEW)
    database.write(queue.add_job, job)
    (leased,) = database.write(queue.lease_jobs, OWNER, 1)
    database.write(queue.fail_job, leased, 'No answer.')
    return NEW.uuid


def test_list_filters_by_kind_state_and_subject(client: Client, failure: str) -> None:
    filters = ('--state', 'failed', '--kind', 'refresh', '--subject', 'c1')
    (row,) = read_json(client, 'operation list', *filters)
    assert (row['UUID'], row['Subject'], row['Reason']) == (
        failure,
        'host c1',
        'No answer.',
    )
    assert read_json(client, 'operation list', '--state', 'running') == []


def test_create_requests_work_on_host(client: Client) -> None:
    record_heartbeat(client.conductor.database, 'c1')
    created = read_json(client, 'operation create', 'refresh', '--host', 'c1')
    assert (created['kind'], created['subject']['id']) == ('refresh', 'c1')
    with pytest.raises(exceptions.CommandError, match='requires a hostname'):
        run_command(client, 'operation create', 'reconcile')


def test_wait_ends_with_operation(client: Client, failure: str) -> None:
    with pytest.raises(exceptions.CommandError, match='failed: No answer'):
        run_command(client, 'operation wait', failure)
    run_command(client, 'operation retry', failure)
    with pytest.raises(exceptions.CommandError, match='The work continues'):
        run_command(client, 'operation wait', failure, '--timeout', '0.001')
    client.conductor.database.write(operations.end_job, [failure])
    result = run_command(client, 'operation wait', failure, '-f', 'json')
    assert (result.json['state'], result.error) == ('succeeded', '100% succeeded\n')


def test_progress_names_step_and_reason() -> None:
    operation = {
        'uuid': IMAGE,
        'state': 'waiting',
        'progress': 25,
        'steps': [{'name': 'checking'}, {'name': 'loading'}],
        'reason': 'busy',
    }
    progress = measure_operation(operation)
    assert (progress.percent, progress.text) == (25, 'waiting loading (busy)')
    assert (progress.is_finished, progress.failure) == (False, '')
