# SPDX-License-Identifier: Apache-2.0
"""A host damaged in ten ways in a real Placement, as an operator has it repaired."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from sqlalchemy import delete

from cyborg_lite.cmd import manage
from cyborg_lite.db.engine import Database
from cyborg_lite.db.tables import Device
from cyborg_lite.model.providers import OWNER_NOVA, ActualProvider
from tests.fakes import placed_host
from tests.fakes.databases import database_fixture
from tests.fakes.placed_host import FULL, Host, add_foreign, host
from tests.fakes.provider_rows import (
    add_device,
    change_deployable,
    change_device,
    remove_devices,
)
from tests.fakes.real_placement import endpoint, remote

__all__ = ['host', 'remote']

database = database_fixture('sqlite')

Out = pytest.CaptureFixture[str]
Lines = list[dict[str, str]]
Audit = Callable[..., tuple[int, Lines]]


@pytest.fixture
def audit_all(
    database: Database, tmp_path: Path, pytestconfig: pytest.Config, capsys: Out
) -> Audit:
    """Runs the command; its exit status and what it printed."""
    file = tmp_path / 'cyborg-lite.conf'
    file.write_text(
        f'[database]\nconnection = sqlite:///{tmp_path}/cyborg_lite.sqlite\n'
        f'[placement]\nendpoint_override = {endpoint(pytestconfig)}\n'
    )

    def run(*more: str) -> tuple[int, Lines]:
        given = ['--config-file', str(file), 'placement', 'audit', *more]
        status = manage.main([*given, '--format', 'json'])
        lines: Lines = json.loads(capsys.readouterr().out)
        return status, lines

    return run


@pytest.fixture
def audit(audit_all: Audit, host: Host) -> Audit:
    """Of one host: this Placement has the hosts of other tests, too."""
    return lambda *more: audit_all('--host', host.name, *more)


def card(host: Host, slot: str) -> Host:
    """Another card of the host, for damage of its own."""
    address = f'0000:{slot}:00.0'
    uuid = add_device(host.database, host.name, address, num_accelerators=4)
    change_device(host.database, uuid, address=address)
    return dataclasses.replace(host, gpu=uuid)


def tell_and_withdraw(host: Host) -> None:
    """A trait of ours, of whatever form, that we do not want any more."""
    change_deployable(host.database, host.gpu, traits=['CUSTOM_PHYSNET1'])
    host.sync()
    change_deployable(host.database, host.gpu, traits=['CUSTOM_NVIDIA_1EB8'])


def mark(host: Host) -> None:
    """As an operator does."""
    host.placement.ensure((), ['CUSTOM_RACK_7'])
    traits = host.read(host.gpu).traits | {'CUSTOM_RACK_7'}
    host.placement.set_traits(host.gpu, host.generation(host.gpu), traits)


def foreign_children(host: Host) -> list[str]:
    return [
        add_foreign(host, f'{host.name}_numa0', host.root.uuid, 'CUSTOM_RACK_7'),
        add_foreign(host, f'child_of_{host.gpu}', host.gpu, 'CUSTOM_RACK_7'),
    ]


def leave_allocation(host: Host) -> str:
    """A server still has the card, which the host has no more; the server."""
    server = host.allocate(host.gpu)
    remove_devices(host.database, [host.gpu])
    return server


REPAIRED = {
    '08': tell_and_withdraw,  # the first, because it needs a sync
    '01': placed_host.delete,
    '02': placed_host.without('traits'),
    '03': placed_host.without('inventories'),
    '04': placed_host.reserve,
    '06': placed_host.rename,
    '07': placed_host.misplace,
}


def test_ten_ways_of_damage(host: Host, database: Database, audit: Audit) -> None:
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
    wrong = {hosts[slot].gpu for slot in (*REPAIRED, '10')}
    assert {line['uuid'] for line in planned} == wrong
    assert snapshot(host, list(before)) == before

    status, done = audit('--apply')
    assert status == 1
    assert [line | {'outcome': ''} for line in done] == [
        line | {'outcome': ''} for line in planned
    ]
    assert {line['uuid'] for line in done if line['outcome'] == 'left as it is'} == {
        hosts['10'].gpu
    }
    assert snapshot(host, list(before)) == before
    for slot in REPAIRED:
        assert is_right(hosts[slot], slot)
    assert host.read(hosts['10'].gpu).inventories == {'PGPU': FULL.closed}

    # What is refused stays on the list until the one whose it is has acted.
    status, left = audit()
    assert (status, {line['outcome'] for line in left}) == (1, {'left as it is'})
    host.remote.send('DELETE', f'/allocations/{server}')
    assert audit('--apply')[0] == 0
    assert audit() == (0, [])
    assert snapshot(host, list(before)) == before


def is_right(host: Host, slot: str) -> bool:
    found = host.read(host.gpu)
    return (
        found.node.name == f'{host.name}_0000:{slot}:00.0'
        and found.node.parent_uuid == host.root.uuid
        and found.inventories == {'PGPU': FULL}
        and found.traits == {'OWNER_CYBORG', 'CUSTOM_NVIDIA_1EB8'}
    )


def snapshot(host: Host, uuids: list[str]) -> Mapping[str, ActualProvider]:
    return {uuid: host.read(uuid) for uuid in uuids}


def test_what_nova_has_is_named_and_left(host: Host, audit: Audit) -> None:
    name = f'{host.name}_0000:3B:00.0'
    theirs = add_foreign(host, name, host.root.uuid, OWNER_NOVA)
    before = host.read(theirs)
    status, lines = audit('--apply')
    assert status == 1
    assert [line['outcome'] for line in lines] == ['repaired', 'left as it is']
    assert f'Nova, provider {name}' in lines[1]['what']
    assert host.placement.provider(host.gpu) is None
    assert host.read(theirs) == before
    host.placement.delete_provider(theirs)
    assert audit('--apply')[0] == 0
    assert audit() == (0, [])
    assert placed_host.is_right(host)


def test_a_misplaced_provider_that_is_in_use_is_refused(
    host: Host, audit: Audit
) -> None:
    host.allocate(host.gpu)
    placed_host.misplace(host)
    before = host.read(host.gpu)
    for more in ((), ('--apply',)):
        status, (line,) = audit(*more)
        assert (status, line['outcome']) == (1, 'left as it is')
        assert 'not moved: it is in use' in line['what']
    assert host.read(host.gpu) == before


def test_a_host_that_placement_does_not_know_cannot_be_told(
    host: Host, database: Database, audit_all: Audit
) -> None:
    add_device(database, 'stranger', 'x')
    status, (line,) = audit_all('--host', 'stranger')
    assert (status, line['host'], line['outcome']) == (2, 'stranger', 'cannot be told')
    assert audit_all('--host', host.name) == (0, [])


def test_what_is_left_of_a_host_that_the_database_does_not_know_is_named(
    host: Host, database: Database, audit_all: Audit
) -> None:
    """Another deployment may share this Placement: a person has to name the host."""
    foreign = add_foreign(host, f'{host.name}_numa0', host.root.uuid, 'CUSTOM_RACK_7')
    before = host.read(foreign)
    remove_devices(database, [host.gpu])
    database.write(lambda session: session.execute(delete(Device)))
    for more in ((), ('--apply',)):
        status, lines = audit_all(*more)
        assert status == 1
        (line,) = (each for each in lines if each['host'] == host.name)
        assert (line['uuid'], line['what']) == (host.gpu, 'deleted')
        assert line['outcome'].startswith('left: no agent of the host is known')
    status, (line,) = audit_all('--apply', '--host', host.name)
    assert (status, line['uuid'], line['outcome']) == (0, host.gpu, 'repaired')
    assert host.placement.provider(host.gpu) is None
    assert host.read(foreign) == before
    assert host.name not in {each['host'] for each in audit_all()[1]}
