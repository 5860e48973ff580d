# SPDX-License-Identifier: Apache-2.0
"""cyborg-lite-manage audit as an operator runs it, before a Nova and a Placement."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cyborg_lite.cmd import manage
from cyborg_lite.db import migration
from cyborg_lite.db.engine import Database
from tests.fakes.http_service import Answer, HttpService
from tests.fakes.nova import FakeNova
from tests.fakes.orphans import Cloud
from tests.fakes.rows import add_arqs, owners, states

Out = pytest.CaptureFixture[str]


@pytest.fixture
def nova() -> Iterator[FakeNova]:
    with FakeNova() as nova:
        yield nova


@pytest.fixture
def placement() -> Iterator[HttpService]:
    with HttpService() as placement:
        yield placement


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    address = f'sqlite:///{tmp_path}/db.sqlite'
    migration.upgrade(address)
    opened = Database(address)
    yield opened
    opened.close()


@pytest.fixture
def cloud(database: Database) -> Cloud:
    return Cloud(database)


@pytest.fixture
def options(
    tmp_path: Path, database: Database, nova: FakeNova, placement: HttpService
) -> list[str]:
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(
        f'[database]\nconnection = sqlite:///{tmp_path}/db.sqlite\n'
        f'[nova]\nendpoint_override = {nova.endpoint}\nconnect_retries = 0\n'
        f'[placement]\nendpoint_override = {placement.url}\n'
        'connect_retries = 0\nstatus_code_retries = 0\n'
    )
    return ['--config-file', str(file), 'audit']


def bound(cloud: Cloud, nova: FakeNova, placement: HttpService) -> tuple[str, str]:
    """A request in order: its server is there, and so is the allocation."""
    uuid, instance = cloud.bound()
    nova.rules.servers[instance] = 'compute-1'
    consumer = cloud.consumers.consumer(instance)
    assert consumer is not None
    (provider,) = consumer.providers
    path = f'GET /resource_providers/{provider}/allocations'
    body = {'allocations': {instance: {'resources': {'PGPU': 1}}}}
    placement.answers[path] = Answer(200, body)
    return uuid, instance


def test_a_cloud_in_order_is_status_0(
    options: list[str],
    cloud: Cloud,
    nova: FakeNova,
    placement: HttpService,
    capsys: Out,
) -> None:
    bound(cloud, nova, placement)
    assert manage.main(options) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 1
    assert said.err == ''


def test_an_audit_says_what_it_would_do_and_does_nothing(
    options: list[str],
    cloud: Cloud,
    nova: FakeNova,
    placement: HttpService,
    capsys: Out,
) -> None:
    uuid, instance = bound(cloud, nova, placement)
    del nova.rules.servers[instance]
    assert manage.main(options) == 1
    (line,) = capsys.readouterr().out.splitlines()[1:]
    assert line.startswith(f'{uuid}  server-gone')
    assert f'Nova has no server {instance}.' in line
    assert line.endswith('delete the request and release what it holds')
    assert owners(cloud.database) == [uuid]


def test_what_it_said_it_does_when_told_to(
    options: list[str],
    cloud: Cloud,
    nova: FakeNova,
    placement: HttpService,
    capsys: Out,
) -> None:
    uuid, instance = bound(cloud, nova, placement)
    del nova.rules.servers[instance]
    assert manage.main([*options, '--apply', '--format', 'json']) == 0
    document = json.loads(capsys.readouterr().out)
    assert document['doubts'] == []
    (finding,) = document['findings']
    assert (finding['arq'], finding['instance']) == (uuid, instance)
    assert (finding['trouble'], finding['outcome']) == ('server-gone', 'done')
    assert states(cloud.database, [uuid]) == []
    assert manage.main(options) == 0


def test_what_needs_a_person_stays_status_1(
    options: list[str],
    cloud: Cloud,
    nova: FakeNova,
    placement: HttpService,
    capsys: Out,
) -> None:
    uuid, _instance = bound(cloud, nova, placement)
    for path in placement.answers:
        placement.answers[path] = Answer(200, {'allocations': {}})
    assert manage.main([*options, '--apply']) == 1
    assert 'a person must decide' in capsys.readouterr().out
    assert owners(cloud.database) == [uuid]


def test_a_nova_that_is_away_is_status_2(
    options: list[str],
    cloud: Cloud,
    nova: FakeNova,
    placement: HttpService,
    capsys: Out,
) -> None:
    bound(cloud, nova, placement)
    nova.rules.failures = 1
    assert manage.main(options) == 2
    assert 'Nova does not answer' in capsys.readouterr().err


def test_the_grace_is_the_operators(
    options: list[str], cloud: Cloud, capsys: Out
) -> None:
    add_arqs(cloud.database, 1)
    assert manage.main(options) == 0
    assert manage.main([*options, '--grace', '-60']) == 1
    assert 'never-bound' in capsys.readouterr().out


def test_servers_that_will_not_come_back_are_forgotten_where_told_to(
    options: list[str], cloud: Cloud
) -> None:
    """Those of disabled profiles, which a shelved server may need again."""
    deleted = cloud.left()
    manage.main(options)
    assert cloud.awaited() == [deleted]
    manage.main([*options, '--apply'])
    assert cloud.awaited() == []
