# SPDX-License-Identifier: Apache-2.0
"""A host on which Nova has vGPUs as well, in a real Placement with a fake Nova."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from cyborg_lite.cmd.manage import main
from tests.builders.provider_rows import change_deployable, remove_devices
from tests.builders.service_rows import record_heartbeat
from tests.doubles.nova import FakeNova
from tests.servers.databases import database_fixture
from tests.servers.placed_host import FULL, Host, host
from tests.servers.placement import endpoint, remote

__all__ = ['host', 'remote']

database = database_fixture('sqlite')

Audit = Callable[..., dict[str, str]]


@pytest.fixture
def nova() -> Iterator[FakeNova]:
    with FakeNova() as nova:
        yield nova


@pytest.fixture
def audit(  # noqa: PLR0913  # fixtures
    host: Host,
    nova: FakeNova,
    tmp_path: Path,
    pytestconfig: pytest.Config,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Audit:
    """Return a function that runs the audit; it returns differences by provider."""
    monkeypatch.setattr(time, 'sleep', lambda seconds: None)
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(
        f'[database]\nconnection = sqlite:///{tmp_path}/cyborg_lite.sqlite\n'
        f'[placement]\nendpoint_override = {endpoint(pytestconfig)}\n'
        f'[nova]\nendpoint_override = {nova.endpoint}\n'
    )

    def run(*arguments: str) -> dict[str, str]:
        options = ['--config-file', str(file), 'placement', 'audit', *arguments]
        status = main.main([*options, '--format', 'json'])
        lines = json.loads(capsys.readouterr().out)
        own = [line for line in lines if line['host'] in ('', host.name)]
        outcomes = {line['outcome'] for line in lines} - {'repaired'}
        assert status == (2 if 'cannot be told' in outcomes else int(bool(outcomes)))
        return {line['uuid']: line['what'] for line in own}

    return run


def test_audit_names_provider_and_instance_of_nova(
    host: Host, nova: FakeNova, audit: Audit
) -> None:
    of_host = '--host', host.name
    assert audit(*of_host) == {}
    instance = host.allocate(host.gpu)
    nova.rules.servers[instance] = host.name
    nova.rules.vm_states[instance] = 'deleted'
    assert audit(*of_host) == {}  # Nova has not deleted its allocation yet
    nova.rules.vm_states[instance] = 'active'
    assert instance in audit(*of_host)[host.gpu]
    name = f'{host.name}_pci_0000_41_00_0'
    card = host.placement.create_provider(str(uuid4()), name, host.root.uuid)
    host.placement.set_inventories(card.uuid, card.generation, {'PGPU': FULL})
    differences = audit(*of_host, '--apply')
    assert differences.keys() == {host.gpu, card.uuid}
    assert 'also has PGPU' in differences[card.uuid]
    host.remote.send('DELETE', f'/allocations/{instance}')
    host.placement.delete_provider(card.uuid)
    assert audit(*of_host) == {}


def test_audit_clears_leak_if_nova_has_no_server(
    host: Host, nova: FakeNova, audit: Audit
) -> None:
    of_host = '--host', host.name
    leak, living = host.allocate(host.gpu), host.allocate(host.gpu)
    nova.rules.servers[living] = host.name
    nova.rules.tasks[living] = 'rebooting'
    nova.rules.failures = 1
    assert 'Nova' in audit(*of_host, '--apply')['']
    assert host.placement.list_consumers(host.gpu) == {leak, living}
    assert 'Nova has no such server' in audit(*of_host)[host.gpu]
    assert leak in audit(*of_host, '--apply')[host.gpu]
    assert host.placement.list_consumers(host.gpu) == {living}
    assert audit(*of_host) == {}


def test_prune_deletes_resource_class_of_removed_card(host: Host, audit: Audit) -> None:
    own_class = f'CUSTOM_CYBORG_{uuid4().hex[:8].upper()}'
    foreign = f'CUSTOM_BAREMETAL_{uuid4().hex[:8].upper()}'
    host.placement.create_custom_names([foreign], ())
    change_deployable(host.database, host.gpu, resource_class=own_class)
    host.sync()
    assert own_class in host.placement.list_custom_classes()
    audit('--prune')
    assert own_class in host.placement.list_custom_classes()
    record_heartbeat(host.database, host.name)
    remove_devices(host.database, [host.gpu])
    assert audit('--prune')[host.gpu] == 'deleted'
    classes = host.placement.list_custom_classes()
    assert own_class not in classes
    assert foreign in classes
