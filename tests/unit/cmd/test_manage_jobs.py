# SPDX-License-Identifier: Apache-2.0
"""cyborg-lite-manage jobs as an operator runs it, with a conductor that winds up."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from cyborg_lite.cmd import manage
from cyborg_lite.conductor.binding import BindHandler, bind_job
from cyborg_lite.conductor.releasing import ReleaseHandler
from cyborg_lite.db import arqs, binding, job_table, jobs, migration, release
from cyborg_lite.db.engine import Database
from cyborg_lite.model.arqs import Scope
from cyborg_lite.model.jobs import JobState, Kind, NewJob
from cyborg_lite.model.queries import Query
from tests.fakes.agents import FakeAgents
from tests.fakes.consumers import FakeConsumers
from tests.fakes.rows import OWNER, add_arqs, add_card, bindings, owners, states
from tests.unit.conductor.test_binding import RULES

EVERYBODY = Scope(project_id=None)
Out = pytest.CaptureFixture[str]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    address = f'sqlite:///{tmp_path}/db.sqlite'
    migration.upgrade(address)
    opened = Database(address)
    yield opened
    opened.close()


@pytest.fixture
def options(tmp_path: Path, database: Database) -> list[str]:
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(f'[database]\nconnection = sqlite:///{tmp_path}/db.sqlite\n')
    return ['--config-file', str(file)]


def waiting_release(database: Database) -> str:
    new = NewJob(Kind.RELEASE, {'handle': 'h1'}, key='h1')
    database.write(jobs.add, new)
    (job,) = database.read(job_table.listed)
    return job.uuid


def give_up(database: Database) -> None:
    (job,) = database.write(jobs.take, OWNER, 1)
    database.write(jobs.give_up, job, 'No answer. ' * 20)


def test_no_jobs_are_an_empty_table(
    options: list[str], database: Database, capsys: Out
) -> None:
    assert manage.main([*options, 'jobs', 'list']) == 0
    assert capsys.readouterr().out.split() == [
        *('UUID', 'KIND', 'STATE', 'ABOUT', 'AGE', 'ATTEMPTS', 'LAST', 'ERROR')
    ]


def test_a_waiting_job_is_nothing_wrong_and_a_failed_one_is(
    options: list[str], database: Database, capsys: Out
) -> None:
    uuid = waiting_release(database)
    assert manage.main([*options, 'jobs', 'list']) == 0
    line = capsys.readouterr().out.splitlines()[1]
    assert re.split(r'  +', line)[:4] == [uuid, 'release', 'waiting', 'handle h1']
    give_up(database)
    assert manage.main([*options, 'jobs', 'list', '--state', 'failed']) == 1
    line = capsys.readouterr().out.splitlines()[1]
    assert re.split(r'  +', line)[2] == 'failed'
    assert line.endswith('No answer. No...')
    assert manage.main([*options, 'jobs', 'list', '--kind', 'bind']) == 0


def test_programs_read_json_with_the_whole_error(
    options: list[str], database: Database, capsys: Out
) -> None:
    uuid = waiting_release(database)
    give_up(database)
    assert manage.main([*options, 'jobs', 'list', '--format', 'json']) == 1
    (job,) = json.loads(capsys.readouterr().out)
    assert (job['uuid'], job['state']) == (uuid, 'failed')
    assert job['last_error'] == 'No answer. ' * 20
    assert job['payload'] == {'handle': 'h1'}


def test_a_failed_job_is_retried(
    options: list[str], database: Database, capsys: Out
) -> None:
    uuid = waiting_release(database)
    give_up(database)
    assert manage.main([*options, 'jobs', 'retry', uuid]) == 0
    assert uuid in capsys.readouterr().out
    (job,) = database.read(job_table.listed)
    assert (job.uuid, job.state) == (uuid, JobState.WAITING)


@pytest.mark.parametrize('what', ['retry', 'cancel'])
def test_an_unknown_job_is_status_2(
    options: list[str], database: Database, capsys: Out, what: str
) -> None:
    assert manage.main([*options, 'jobs', what, 'nonsense']) == 2
    assert 'Job nonsense not found.' in capsys.readouterr().err


@pytest.mark.parametrize(
    'arguments', [[], ['jobs'], ['jobs', 'retry'], ['jobs', 'list', '--state', 'x']]
)
def test_a_wrong_command_is_status_2(
    options: list[str], database: Database, arguments: list[str], capsys: Out
) -> None:
    with pytest.raises(SystemExit) as end:
        manage.main([*options, *arguments])
    assert end.value.code == 2
    assert 'usage' in capsys.readouterr().err


def test_a_wrong_file_is_status_2(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / 'wrong.conf'
    file.write_text('[conductor]\nworkers = many\n')
    assert manage.main(['--config-file', str(file), 'jobs', 'list']) == 2
    assert 'workers' in capsys.readouterr().err


def test_a_database_without_tables_is_status_2(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(f'[database]\nconnection = sqlite:///{tmp_path}/new.sqlite\n')
    assert manage.main(['--config-file', str(file), 'jobs', 'list']) == 2
    assert 'cyborg-lite-dbsync' in capsys.readouterr().err


# --- what becomes of what is cancelled ------------------------------------------------


def test_a_cancelled_bind_fails_and_holds_nothing(
    options: list[str], database: Database
) -> None:
    """As if its time had run out; and Nova is told."""
    uuids, instance = add_arqs(database, 2), str(uuid4())
    wanted = bindings(uuids, add_card(database, 2, needs_host=True), instance)
    new = bind_job(wanted, RULES, 'req-1')
    job = database.write(binding.accept, wanted, EVERYBODY, new, OWNER)
    claimed = database.write(binding.claim, job, uuids, None, NewJob(Kind.NOVA_EVENT))
    database.write(jobs.put_off, claimed.job, 200_000, 'The host does not answer.')
    assert owners(database) == sorted(uuids)

    assert manage.main([*options, 'jobs', 'cancel', job.uuid]) == 0
    (cancelled,) = database.write(jobs.take, OWNER, 10)
    agents = FakeAgents()
    handler = BindHandler(database, agents, FakeConsumers(), RULES)
    event = handler.expire(cancelled, 'It was cancelled by an operator.')

    assert event is not None
    assert event.payload['succeeded'] is False
    assert states(database, uuids) == ['BindFailed'] * 2
    (first, *_) = database.read(arqs.listed, Query(), EVERYBODY)
    assert first.status_reason == 'It was cancelled by an operator.'
    for one in database.write(jobs.take, OWNER, 10, [Kind.RELEASE]):
        ReleaseHandler(database, agents).run(one)
    assert owners(database) == []


def test_a_cancelled_release_stays_as_failed_and_keeps_its_handle(
    options: list[str], database: Database
) -> None:
    uuids = add_arqs(database, 1)
    wanted = bindings(uuids, add_card(database, 1, needs_host=True))
    bind, told = NewJob(Kind.BIND), NewJob(Kind.NOVA_EVENT)
    job = database.write(binding.accept, wanted, EVERYBODY, bind, OWNER)
    claimed = database.write(binding.claim, job, uuids, None, told)
    event = database.write(binding.succeed, claimed.job, uuids, None, told)
    database.write(jobs.finish, event)
    database.write(release.delete_listed, uuids, EVERYBODY, True, None)
    (waiting,) = database.read(job_table.listed)

    assert manage.main([*options, 'jobs', 'cancel', waiting.uuid]) == 0
    (cancelled,) = database.write(jobs.take, OWNER, 10)
    agents = FakeAgents()
    handler = ReleaseHandler(database, agents)
    assert handler.expire(cancelled, 'It was cancelled by an operator.') is None
    assert owners(database) == uuids
    assert states(database, uuids) == ['Deleting']
    assert manage.main([*options, 'jobs', 'list']) == 1
    # It cannot be forgotten, only retried; then the handle is free at last.
    assert manage.main([*options, 'jobs', 'cancel', waiting.uuid]) == 2
    assert manage.main([*options, 'jobs', 'retry', waiting.uuid]) == 0
    (again,) = database.write(jobs.take, OWNER, 10)
    handler.run(again)
    assert owners(database) == []
    assert manage.main([*options, 'jobs', 'list']) == 0
