# SPDX-License-Identifier: Apache-2.0
"""Tests of jobs in responses."""

from datetime import UTC, datetime

from cyborg_lite.api.views.jobs import JobView, QueuedJobList
from cyborg_lite.model.bitstreams.program_jobs import (
    ProgramJob,
    ProgramState,
    ProgramStep,
)
from cyborg_lite.model.jobs import JobRecord, JobState
from tests.builders.api_calls import render

TIME = datetime(2026, 11, 21, tzinfo=UTC)


def test_job_view_has_progress_of_step() -> None:
    job = ProgramJob(
        'u', 'd', 'i', ProgramState.RUNNING, ProgramStep.LOADING, 'slow', TIME
    )
    body = render(JobView(job))
    assert (body['step'], body['progress'], body['reason']) == ('loading', 25, 'slow')
    assert body['links'] == [{'href': 'http://api/v2/jobs/u', 'rel': 'self'}]


def test_queued_job_list_describes_payload() -> None:
    record = JobRecord(
        uuid='u',
        type='of-later-release',
        state=JobState.WAITING,
        key=None,
        payload={'hostname': 'compute-1'},
        attempts=1,
        step='',
        age=2.0,
        due_in=-1.0,
        deadline_in=None,
        cancelled=False,
        owner=None,
        last_error='',
        request_id=None,
    )
    (job,) = render(QueuedJobList([record]))['jobs']
    assert (job['kind'], job['subject']) == ('of-later-release', 'host compute-1')
    assert (job['step'], job['reason'], job['due_in']) == (None, None, -1.0)
