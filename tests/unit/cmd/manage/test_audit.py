# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage audit`` with fake Nova and Placement services."""

import json
import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from cyborg_lite.cmd.manage import main
from cyborg_lite.db.core import incarnations
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.hosts.incarnations import NO_MARK
from tests.builders.orphans import Cloud
from tests.builders.rows import add_arqs, owners, states
from tests.doubles.http_service import Answer, HttpService
from tests.doubles.nova import FakeNova

Out = pytest.CaptureFixture[str]


class Bench:
    """An ARQ whose instance and allocation exist, and the command that audits it."""

    def __init__(
        self,
        database: Database,
        nova: FakeNova,
        placement: HttpService,
        options: list[str],
    ) -> None:
        self.cloud = Cloud(database)
        providers = Answer(200, {'resource_providers': []})
        path = 'GET /resource_providers?required=OWNER_CYBORG'
        placement.answers[path] = providers
        self.nova = nova
        self.placement = placement
        self._options = [*options, 'audit']

    def bind(self) -> tuple[str, str]:
        """Bind an ARQ; return its uuid and its instance."""
        uuid, instance = self.cloud.bound()
        self.nova.rules.servers[instance] = 'compute-1'
        consumer = self.cloud.consumers.find_consumer(instance)
        assert consumer is not None
        (self.provider,) = consumer.providers
        self.path = f'GET /resource_providers/{self.provider}/allocations'
        self.allocate(instance)
        return uuid, instance

    def allocate(self, *instances: str) -> None:
        allocations = {uuid: {'resources': {'PGPU': 1}} for uuid in instances}
        self.placement.answers[self.path] = Answer(200, {'allocations': allocations})

    def audit(self, *arguments: str) -> int:
        return main.main([*self._options, *arguments])


@pytest.fixture
def bench(
    write_config: Callable[..., list[str]],
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Bench]:
    monkeypatch.setattr(time, 'sleep', lambda seconds: None)
    with FakeNova() as nova, HttpService() as placement:
        lines = (
            f'[nova]\nendpoint_override = {nova.endpoint}\nconnect_retries = 0\n'
            f'[placement]\nendpoint_override = {placement.url}\n'
            'connect_retries = 0\nstatus_code_retries = 0\n'
        )
        yield Bench(database, nova, placement, write_config(lines))


def test_audit_without_findings_returns_0(bench: Bench, capsys: Out) -> None:
    bench.bind()
    assert bench.audit() == 0
    output = capsys.readouterr()
    assert len(output.out.splitlines()) == 1
    assert output.err == ''


def test_audit_apply_deletes_arq_of_deleted_instance(bench: Bench, capsys: Out) -> None:
    uuid, instance = bench.bind()
    del bench.nova.rules.servers[instance]
    bench.allocate()
    assert bench.audit('--apply', '--format', 'json') == 0
    document = json.loads(capsys.readouterr().out)
    assert document['doubts'] == []
    (finding,) = document['findings']
    assert (finding['arq'], finding['instance']) == (uuid, instance)
    assert (finding['trouble'], finding['outcome']) == ('server-gone', 'done')
    assert states(bench.cloud.database, [uuid]) == []
    assert bench.audit() == 0


def test_audit_of_restored_database_applies_nothing(bench: Bench, capsys: Out) -> None:
    uuid, instance = bench.bind()
    database = bench.cloud.database
    database.write(incarnations.begin_quarantine, NO_MARK, 'Step 5 is lost.')
    assert bench.audit() == 2
    output = capsys.readouterr()
    assert 'nothing to do' not in output.out
    assert 'Step 5 is lost.' in output.err
    del bench.nova.rules.servers[instance]
    assert bench.audit('--apply') == 2
    assert 'has lost changes' in capsys.readouterr().err
    assert owners(database) == [uuid]


def test_audit_finding_without_remedy_returns_1(bench: Bench, capsys: Out) -> None:
    uuid, _instance = bench.bind()
    bench.allocate()
    assert bench.audit('--apply') == 1
    assert 'an operator must decide' in capsys.readouterr().out
    assert owners(bench.cloud.database) == [uuid]


def test_audit_lists_allocation_without_arq(bench: Bench, capsys: Out) -> None:
    _uuid, instance = bench.bind()
    guest = str(uuid4())
    bench.nova.rules.servers[guest] = 'compute-1'
    bench.allocate(instance, guest)
    assert bench.audit('--apply', '--format', 'json') == 1
    (finding,) = json.loads(capsys.readouterr().out)['findings']
    assert (finding['trouble'], finding['outcome']) == ('no-arq', 'told')
    assert (finding['arq'], finding['instance']) == (None, guest)
    assert finding['host'] == 'compute-1'
    assert (finding['provider'], finding['proposal']) == (
        bench.provider,
        'none: an operator must decide',
    )
    assert bench.audit() == 1
    (line,) = capsys.readouterr().out.splitlines()[1:]
    assert line.startswith('-')
    assert f'Instance {guest} has allocated 1 PGPU without an ARQ' in line


def test_audit_apply_clears_leaked_allocation(bench: Bench, capsys: Out) -> None:
    _uuid, instance = bench.bind()
    guest = str(uuid4())
    bench.allocate(instance, guest)
    allocations = {bench.provider: {'resources': {'PGPU': 1}}}
    owner = {'project_id': 'p', 'user_id': 'u', 'consumer_generation': 1}
    bench.placement.answers |= {
        f'GET /allocations/{guest}': Answer(200, {'allocations': allocations, **owner}),
        f'PUT /allocations/{guest}': Answer(204),
    }
    assert bench.audit('--format', 'json') == 1
    (finding,) = json.loads(capsys.readouterr().out)['findings']
    assert (finding['trouble'], finding['instance']) == ('leaked-allocation', guest)
    assert finding['proposal'] == 'delete the allocation in Placement'
    assert all(request.method == 'GET' for request in bench.placement.requests)
    assert bench.audit('--apply', '--format', 'json') == 0
    (finding,) = json.loads(capsys.readouterr().out)['findings']
    assert finding['outcome'] == 'done'
    (put,) = (item for item in bench.placement.requests if item.method == 'PUT')
    assert json.loads(put.body) == {'allocations': {}, **owner}


def test_audit_nova_unreachable_returns_2(bench: Bench, capsys: Out) -> None:
    bench.bind()
    bench.nova.rules.failures = 1
    assert bench.audit() == 2
    assert 'Nova does not answer' in capsys.readouterr().err


def test_audit_grace_option_overrides_configuration(bench: Bench, capsys: Out) -> None:
    add_arqs(bench.cloud.database, 1)
    assert bench.audit() == 0
    assert bench.audit('--grace', '-60') == 1
    assert 'never-bound' in capsys.readouterr().out


def test_audit_apply_removes_deleted_former_instances(bench: Bench) -> None:
    """Disabled profiles keep a list of instances that may be unshelved."""
    deleted = bench.cloud.add_former_instance()
    bench.audit()
    assert bench.cloud.list_former_instances() == [deleted]
    bench.audit('--apply')
    assert bench.cloud.list_former_instances() == []
