# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage audit`` with fake Nova and Placement services."""

import json
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from cyborg_lite.cmd.manage import main
from cyborg_lite.db.core.engine import Database
from tests.builders.orphans import Cloud
from tests.builders.rows import add_arqs, owners, states
from tests.doubles.http_service import Answer, HttpService
from tests.doubles.nova import FakeNova

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
def cloud(database: Database) -> Cloud:
    return Cloud(database)


@pytest.fixture
def options(
    write_config: Callable[..., list[str]], nova: FakeNova, placement: HttpService
) -> list[str]:
    lines = (
        f'[nova]\nendpoint_override = {nova.endpoint}\nconnect_retries = 0\n'
        f'[placement]\nendpoint_override = {placement.url}\n'
        'connect_retries = 0\nstatus_code_retries = 0\n'
    )
    return [*write_config(lines), 'audit']


def bind_arq(cloud: Cloud, nova: FakeNova, placement: HttpService) -> tuple[str, str]:
    """Bind an ARQ whose instance and allocation exist."""
    uuid, instance = cloud.bound()
    nova.rules.servers[instance] = 'compute-1'
    consumer = cloud.consumers.find_consumer(instance)
    assert consumer is not None
    (provider,) = consumer.providers
    path = f'GET /resource_providers/{provider}/allocations'
    body = {'allocations': {instance: {'resources': {'PGPU': 1}}}}
    placement.answers[path] = Answer(200, body)
    return uuid, instance


def test_audit_without_findings_returns_0(
    options: list[str],
    cloud: Cloud,
    nova: FakeNova,
    placement: HttpService,
    capsys: Out,
) -> None:
    bind_arq(cloud, nova, placement)
    assert main.main(options) == 0
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 1
    assert output.err == ''


def test_audit_without_apply_only_reports(
    options: list[str],
    cloud: Cloud,
    nova: FakeNova,
    placement: HttpService,
    capsys: Out,
) -> None:
    uuid, instance = bind_arq(cloud, nova, placement)
    del nova.rules.servers[instance]
    assert main.main(options) == 1
    (line,) = capsys.readouterr().out.splitlines()[1:]
    assert line.startswith(f'{uuid}  server-gone')
    assert f'Instance {instance} does not exist in Nova.' in line
    assert line.endswith('delete the ARQ and release its attach handle')
    assert owners(cloud.database) == [uuid]


def test_audit_apply_deletes_arq_of_deleted_instance(
    options: list[str],
    cloud: Cloud,
    nova: FakeNova,
    placement: HttpService,
    capsys: Out,
) -> None:
    uuid, instance = bind_arq(cloud, nova, placement)
    del nova.rules.servers[instance]
    assert main.main([*options, '--apply', '--format', 'json']) == 0
    document = json.loads(capsys.readouterr().out)
    assert document['doubts'] == []
    (finding,) = document['findings']
    assert (finding['arq'], finding['instance']) == (uuid, instance)
    assert (finding['trouble'], finding['outcome']) == ('server-gone', 'done')
    assert states(cloud.database, [uuid]) == []
    assert main.main(options) == 0


def test_audit_finding_without_remedy_returns_1(
    options: list[str],
    cloud: Cloud,
    nova: FakeNova,
    placement: HttpService,
    capsys: Out,
) -> None:
    uuid, _instance = bind_arq(cloud, nova, placement)
    for path in placement.answers:
        placement.answers[path] = Answer(200, {'allocations': {}})
    assert main.main([*options, '--apply']) == 1
    assert 'an operator must decide' in capsys.readouterr().out
    assert owners(cloud.database) == [uuid]


def test_audit_lists_allocation_without_arq(
    options: list[str],
    cloud: Cloud,
    nova: FakeNova,
    placement: HttpService,
    capsys: Out,
) -> None:
    _uuid, instance = bind_arq(cloud, nova, placement)
    guest = str(uuid4())
    nova.rules.servers[guest] = 'compute-1'
    (path,) = placement.answers
    consumers = {uuid: {'resources': {'PGPU': 1}} for uuid in (instance, guest)}
    placement.answers[path] = Answer(200, {'allocations': consumers})
    assert main.main([*options, '--apply', '--format', 'json']) == 1
    (finding,) = json.loads(capsys.readouterr().out)['findings']
    assert (finding['trouble'], finding['outcome']) == ('no-arq', 'told')
    assert (finding['arq'], finding['instance']) == (None, guest)
    assert finding['host'] == 'compute-1'
    assert main.main(options) == 1
    (line,) = capsys.readouterr().out.splitlines()[1:]
    assert line.startswith('-')
    assert f'Instance {guest} has allocated PGPU without an ARQ' in line
    del nova.rules.servers[guest]
    assert main.main(options) == 0


def test_audit_nova_unreachable_returns_2(
    options: list[str],
    cloud: Cloud,
    nova: FakeNova,
    placement: HttpService,
    capsys: Out,
) -> None:
    bind_arq(cloud, nova, placement)
    nova.rules.failures = 1
    assert main.main(options) == 2
    assert 'Nova does not answer' in capsys.readouterr().err


def test_audit_grace_option_overrides_configuration(
    options: list[str], cloud: Cloud, capsys: Out
) -> None:
    add_arqs(cloud.database, 1)
    assert main.main(options) == 0
    assert main.main([*options, '--grace', '-60']) == 1
    assert 'never-bound' in capsys.readouterr().out


def test_audit_apply_removes_deleted_former_instances(
    options: list[str], cloud: Cloud
) -> None:
    """Disabled profiles keep a list of instances that may be unshelved."""
    deleted = cloud.add_former_instance()
    main.main(options)
    assert cloud.list_former_instances() == [deleted]
    main.main([*options, '--apply'])
    assert cloud.list_former_instances() == []
