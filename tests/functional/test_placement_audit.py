# SPDX-License-Identifier: Apache-2.0
"""Repair of a host that is damaged in twelve ways in a real Placement."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from uuid import uuid4

import pytest

from cyborg_lite.cmd.manage import main
from cyborg_lite.conductor.providers.sync import PlacementSync
from cyborg_lite.db.core.engine import Database
from cyborg_lite.errors.base import CyborgError
from cyborg_lite.model.providers.providers import ActualProvider
from tests.builders.provider_rows import (
    add_device,
    change_deployable,
    change_device,
    remove_devices,
)
from tests.servers import placed_host
from tests.servers.databases import database_fixture
from tests.servers.placed_host import FULL, Host, add_foreign, host
from tests.servers.placement import endpoint, remote

__all__ = ['host', 'remote']

database = database_fixture('sqlite')

Out = pytest.CaptureFixture[str]
Lines = list[dict[str, str]]
Audit = Callable[..., tuple[int, Lines]]


@pytest.fixture
def audit_all(
    database: Database, tmp_path: Path, pytestconfig: pytest.Config, capsys: Out
) -> Audit:
    """Return a function that runs the command; it returns exit status and output."""
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(
        f'[database]\nconnection = sqlite:///{tmp_path}/cyborg_lite.sqlite\n'
        f'[placement]\nendpoint_override = {endpoint(pytestconfig)}\n'
    )

    def run(*parameters: str) -> tuple[int, Lines]:
        arguments = ['--config-file', str(file), 'placement', 'audit', *parameters]
        status = main.main([*arguments, '--format', 'json'])
        lines: Lines = json.loads(capsys.readouterr().out)
        return status, lines

    return run


@pytest.fixture
def audit(audit_all: Audit, host: Host) -> Audit:
    """Return the audit of one host, because this Placement has hosts of other tests."""
    return lambda *arguments: audit_all('--host', host.name, *arguments)


def card(host: Host, slot: str) -> Host:
    """Add another card to the host, for independent damage."""
    address = f'0000:{slot}:00.0'
    uuid = add_device(host.database, host.name, address, num_accelerators=4)
    change_device(host.database, uuid, control_address=address)
    return dataclasses.replace(host, gpu=uuid)


def publish_and_withdraw(host: Host) -> None:
    """Publish a trait of this service and withdraw it in the database."""
    change_deployable(host.database, host.gpu, traits=['CUSTOM_PHYSNET1'])
    host.sync()
    change_deployable(host.database, host.gpu, traits=['CUSTOM_NVIDIA_1EB8'])


def mark(host: Host) -> None:
    """Add the repair marker as an operator does."""
    host.placement.create_custom_names((), ['CUSTOM_RACK_7'])
    traits = host.read(host.gpu).traits | {'CUSTOM_RACK_7'}
    host.placement.set_traits(host.gpu, host.generation(host.gpu), traits)


def foreign_children(host: Host) -> list[str]:
    return [
        add_foreign(host, f'{host.name}_numa0', host.root.uuid, 'CUSTOM_RACK_7'),
        add_foreign(host, f'child_of_{host.gpu}', host.gpu, 'CUSTOM_RACK_7'),
    ]


def leave_allocation(host: Host) -> str:
    """Leave the allocation of an instance on a removed card; return the instance."""
    server = host.allocate(host.gpu)
    remove_devices(host.database, [host.gpu])
    return server


REPAIRED = {
    '08': publish_and_withdraw,  # first, because it needs a sync
    '01': placed_host.delete,
    '02': placed_host.without('traits'),
    '03': placed_host.without('inventories'),
    '04': placed_host.reserve,
    '06': placed_host.rename,
    '07': placed_host.misplace,
    '11': placed_host.oversell,
    '12': placed_host.make_stale,
}


def test_audit_repairs_twelve_ways_of_damage(
    host: Host, database: Database, audit: Audit
) -> None:
    hosts = {slot: card(host, slot) for slot in ('05', '09', '10', *REPAIRED)}
    host.sync()
    assert audit() == (0, [])
    for slot, damage in REPAIRED.items():
        damage(hosts[slot])
    foreign = foreign_children(hosts['05'])
    mark(hosts['09'])
    server = leave_allocation(hosts['10'])
    before = snapshot(host, [host.root.uuid, *foreign, hosts['09'].gpu])

    status, planned = audit()
    assert status == 1
    drifted = {hosts[slot].gpu for slot in (*REPAIRED, '10')}
    assert {line['uuid'] for line in planned} == drifted
    assert snapshot(host, list(before)) == before

    status, repaired = audit('--apply')
    assert status == 1
    assert [line | {'outcome': ''} for line in repaired] == [
        line | {'outcome': ''} for line in planned
    ]
    assert {
        line['uuid'] for line in repaired if line['outcome'] == 'left as it is'
    } == {hosts['10'].gpu}
    assert snapshot(host, list(before)) == before
    for slot in REPAIRED:
        assert is_right(hosts[slot], slot)
    assert host.read(hosts['10'].gpu).inventories == {'PGPU': FULL.fully_reserved}

    # Refused repairs stay in the list until their owner has acted.
    status, remaining = audit()
    assert (status, {line['outcome'] for line in remaining}) == (1, {'left as it is'})
    host.remote.send('DELETE', f'/allocations/{server}')
    assert audit('--apply')[0] == 0
    assert audit() == (0, [])
    assert snapshot(host, list(before)) == before


def is_right(host: Host, slot: str) -> bool:
    actual = host.read(host.gpu)
    return (
        actual.node.name == f'{host.name}_0000:{slot}:00.0'
        and actual.node.parent_uuid == host.root.uuid
        and actual.inventories == {'PGPU': FULL}
        and actual.traits == {'OWNER_CYBORG', 'CUSTOM_NVIDIA_1EB8'}
    )


def snapshot(host: Host, uuids: list[str]) -> Mapping[str, ActualProvider]:
    return {uuid: host.read(uuid) for uuid in uuids}


def test_sync_deleted_trait_is_created_again(host: Host, database: Database) -> None:
    """The attempt after the failed one creates it."""
    trait = f'CUSTOM_{uuid4().hex.upper()}'
    sync = PlacementSync(database, host.placement)
    change_deployable(database, host.gpu, traits=[trait])
    sync.sync(host.name)
    host.placement.delete_provider(host.gpu)
    host.remote.send('DELETE', f'/traits/{trait}')
    with pytest.raises(CyborgError):
        sync.sync(host.name)
    sync.sync(host.name)
    assert trait in host.read(host.gpu).traits
