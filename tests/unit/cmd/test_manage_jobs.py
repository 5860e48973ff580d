# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage jobs``, with the handlers of cancelled jobs."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from cyborg_lite.cmd import manage
from cyborg_lite.conductor.binding import BindHandler, build_bind_job
from cyborg_lite.conductor.releasing import ReleaseHandler
from cyborg_lite.db import arqs, binding, release
from cyborg_lite.db.engine import Database
from cyborg_lite.db.jobs import administration, queue
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.jobs import JobState, JobType, NewJob
from cyborg_lite.model.queries import Query
from tests.builders.bind_rules import RULES
from tests.builders.rows import OWNER, add_arqs, add_card, bindings, owners, states
from tests.doubles.agents import FakeAgents
from tests.doubles.consumers import FakeConsumers

ALL_PROJECTS = Scope(project_id=None)
Out = pytest.CaptureFixture[str]


@pytest.fixture
def options(write_config: Callable[..., list[str]]) -> list[str]:
    return write_config()


def add_release_job(database: Database) -> str:
    new = NewJob(JobType.RELEASE, {'handle': 'h1'}, key='h1')
    database.write(queue.add_job, new)
    (job,) = database.read(administration.list_jobs)
    return job.uuid


def fail_job(database: Database) -> None:
    (job,) = database.write(queue.lease_jobs, OWNER, 1)
    database.write(queue.fail_job, job, 'No answer. ' * 20)


def test_list_without_jobs_says_so(
    options: list[str], database: Database, capsys: Out
) -> None:
    assert manage.main([*options, 'jobs', 'list']) == 0
    assert capsys.readouterr().out.split('.')[0].startswith('No unfinished')


def test_list_returns_1_only_for_failed_jobs(
    options: list[str], database: Database, capsys: Out
) -> None:
    uuid = add_release_job(database)
    assert manage.main([*options, 'jobs', 'list']) == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert re.split(r'  +', line)[:4] == [uuid, 'release', 'waiting', 'handle h1']
    fail_job(database)
    assert manage.main([*options, 'jobs', 'list', '--state', 'failed']) == 1
    line = capsys.readouterr().out.splitlines()[1]
    assert re.split(r'  +', line)[2] == 'failed'
    assert line.endswith('No answer. No...')
    assert manage.main([*options, 'jobs', 'list', '--kind', 'bind']) == 0


def test_list_json_contains_whole_error(
    options: list[str], database: Database, capsys: Out
) -> None:
    uuid = add_release_job(database)
    fail_job(database)
    assert manage.main([*options, 'jobs', 'list', '--format', 'json']) == 1
    (job,) = json.loads(capsys.readouterr().out)
    assert (job['uuid'], job['kind'], job['state']) == (uuid, 'release', 'failed')
    assert job['last_error'] == 'No answer. ' * 20
    assert job['payload'] == {'handle': 'h1'}


def test_retry_failed_job_is_waiting_again(
    options: list[str], database: Database, capsys: Out
) -> None:
    uuid = add_release_job(database)
    fail_job(database)
    assert manage.main([*options, 'jobs', 'retry', uuid]) == 0
    assert uuid in capsys.readouterr().out
    (job,) = database.read(administration.list_jobs)
    assert (job.uuid, job.state) == (uuid, JobState.WAITING)


@pytest.mark.parametrize('command', ['retry', 'cancel'])
def test_command_unknown_job_returns_2(
    options: list[str], database: Database, capsys: Out, command: str
) -> None:
    assert manage.main([*options, 'jobs', command, 'nonsense']) == 2
    assert 'Job nonsense not found.' in capsys.readouterr().err


@pytest.mark.parametrize(
    'arguments', [[], ['jobs'], ['jobs', 'retry'], ['jobs', 'list', '--state', 'x']]
)
def test_invalid_command_exits_with_2(
    options: list[str], database: Database, arguments: list[str], capsys: Out
) -> None:
    with pytest.raises(SystemExit) as end:
        manage.main([*options, *arguments])
    assert end.value.code == 2
    assert 'usage' in capsys.readouterr().err


def test_list_without_schema_returns_2(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(f'[database]\nconnection = sqlite:///{tmp_path}/new.sqlite\n')
    assert manage.main(['--config-file', str(file), 'jobs', 'list']) == 2
    assert 'cyborg-lite-dbsync' in capsys.readouterr().err


# --- handlers of cancelled jobs -----------------------------------------------------


def test_cancel_bind_fails_arqs_and_releases_handles(
    options: list[str], database: Database
) -> None:
    """The result is the same as for a timeout, with an event to Nova."""
    uuids, instance = add_arqs(database, 2), str(uuid4())
    requested = bindings(uuids, add_card(database, 2, needs_host=True), instance)
    new = build_bind_job(requested, RULES, 'req-1')
    job = database.write(binding.accept_bind, requested, ALL_PROJECTS, new, OWNER)
    claimed = database.write(
        binding.claim_for_bind, job, uuids, None, NewJob(JobType.NOVA_EVENT)
    )
    database.write(
        queue.postpone_job, claimed.job, 200_000, 'The host does not answer.'
    )
    assert owners(database) == sorted(uuids)

    assert manage.main([*options, 'jobs', 'cancel', job.uuid]) == 0
    (cancelled,) = database.write(queue.lease_jobs, OWNER, 10)
    agents = FakeAgents()
    handler = BindHandler(database, agents, FakeConsumers(), RULES)
    event = handler.expire(cancelled, 'It was cancelled by an operator.')

    assert event is not None
    assert event.payload['succeeded'] is False
    assert states(database, uuids) == ['BindFailed'] * 2
    (first, *_) = database.read(arqs.list_arqs, Query(), ALL_PROJECTS)
    assert first.status_reason == 'It was cancelled by an operator.'
    for job in database.write(queue.lease_jobs, OWNER, 10, [JobType.RELEASE]):
        ReleaseHandler(database, agents).run(job)
    assert owners(database) == []


def test_cancel_release_keeps_failed_job_and_handle(
    options: list[str], database: Database
) -> None:
    uuids = add_arqs(database, 1)
    requested = bindings(uuids, add_card(database, 1, needs_host=True))
    bind, event_job = NewJob(JobType.BIND), NewJob(JobType.NOVA_EVENT)
    job = database.write(binding.accept_bind, requested, ALL_PROJECTS, bind, OWNER)
    claimed = database.write(binding.claim_for_bind, job, uuids, None, event_job)
    event = database.write(binding.complete_bind, claimed.job, uuids, None, event_job)
    database.write(queue.finish_job, event)
    database.write(release.delete_arqs, uuids, ALL_PROJECTS, True, None)
    (waiting,) = database.read(administration.list_jobs)

    assert manage.main([*options, 'jobs', 'cancel', waiting.uuid]) == 0
    (cancelled,) = database.write(queue.lease_jobs, OWNER, 10)
    agents = FakeAgents()
    handler = ReleaseHandler(database, agents)
    assert handler.expire(cancelled, 'It was cancelled by an operator.') is None
    assert owners(database) == uuids
    assert states(database, uuids) == ['Deleting']
    assert manage.main([*options, 'jobs', 'list']) == 1
    # A failed release can only be retried. The retry releases the handle.
    assert manage.main([*options, 'jobs', 'cancel', waiting.uuid]) == 2
    assert manage.main([*options, 'jobs', 'retry', waiting.uuid]) == 0
    (next_job,) = database.write(queue.lease_jobs, OWNER, 10)
    handler.run(next_job)
    assert owners(database) == []
    assert manage.main([*options, 'jobs', 'list']) == 0
