# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage placement audit`` with a fake Placement."""

import json
from collections.abc import Callable
from uuid import uuid4

import pytest

from cyborg_lite.cmd.manage import main
from cyborg_lite.db.core import incarnations
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.jobs import administration
from cyborg_lite.errors.daemons import ServiceUnavailable
from cyborg_lite.model.hosts.incarnations import NO_MARK
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.providers.providers import ProviderInventory
from cyborg_lite.model.traits import EMPTIED, OWNER_CYBORG
from tests.builders.provider_rows import add_device, change_deployable, remove_devices
from tests.builders.reports import HOST
from tests.doubles.placement import FakePlacement

Out = pytest.CaptureFixture[str]
Run = Callable[..., int]


@pytest.fixture
def run(write_config: Callable[..., list[str]], placement: FakePlacement) -> Run:
    """Return a function that runs the command with further arguments."""
    options = [*write_config(), 'placement', 'audit']
    return lambda *arguments: main.main([*options, *arguments])


def parse(capsys: Out) -> list[dict[str, str]]:
    lines: list[dict[str, str]] = json.loads(capsys.readouterr().out)
    return lines


def test_audit_without_difference_returns_0(
    run: Run, database: Database, capsys: Out
) -> None:
    add_device(database, HOST, 'gpu')
    run('--apply')
    capsys.readouterr()
    assert run() == 0
    assert capsys.readouterr().out == 'Placement is up to date for 1 host.\n'


def test_audit_of_restored_database_is_not_up_to_date(
    run: Run, database: Database, placement: FakePlacement, capsys: Out
) -> None:
    database.write(incarnations.begin_quarantine, NO_MARK, 'Step 5 is lost.')
    assert run() == 2
    assert 'Step 5 is lost.' in capsys.readouterr().out
    rp_uuid = add_device(database, HOST, 'gpu')
    assert run('--apply') == 2
    assert rp_uuid not in placement.providers


def test_audit_difference_is_listed_and_not_repaired(
    run: Run, database: Database, placement: FakePlacement, capsys: Out
) -> None:
    rp_uuid = add_device(database, HOST, 'gpu')
    assert run() == 1
    heading, *rows = capsys.readouterr().out.splitlines()
    assert heading.split() == ['HOST', 'PROVIDER', 'OUTCOME', 'DIFFERENCE']
    assert rows[0].split()[:3] == [HOST, f'{HOST}_gpu', 'to']
    assert rows[0].endswith('created')
    assert rp_uuid not in placement.providers


def test_audit_problem_is_left_and_returns_1(
    run: Run, database: Database, placement: FakePlacement, capsys: Out
) -> None:
    """A resource class that a guest uses cannot be removed."""
    rp_uuid = add_device(database, HOST, 'gpu')
    run('--apply')
    placement.allocate(rp_uuid, {'PGPU': 1})
    change_deployable(database, rp_uuid, resource_class='VGPU')
    capsys.readouterr()
    assert run('--apply', '--format', 'json') == 1
    outcomes = {line['outcome']: line['what'] for line in parse(capsys)}
    assert 'PGPU is obsolete, but allocated' in outcomes['left as it is']
    assert run('--apply') == 1
    assert 'not changed' in capsys.readouterr().out


def test_audit_one_host_unreachable_returns_2(
    run: Run, database: Database, placement: FakePlacement, capsys: Out
) -> None:
    add_device(database, HOST, 'gpu')
    add_device(database, 'compute-2', 'gpu')  # without a compute node
    assert run('--format', 'json') == 2
    lines = {line['host']: line for line in parse(capsys)}
    assert lines['compute-2']['outcome'] == 'cannot be told'
    assert lines[HOST]['outcome'] == 'to be repaired'


@pytest.mark.parametrize('options', [(), ('--apply',), ('--prune',)])
def test_audit_unknown_host_is_never_changed(
    run: Run, placement: FakePlacement, capsys: Out, options: tuple[str, ...]
) -> None:
    """A host without devices may belong to another deployment."""
    (root,) = (provider.node for provider in placement.providers.values())
    node = placement.create_provider(str(uuid4()), f'{HOST}_gpu', root.uuid)
    placement.providers[node.uuid].traits = frozenset({OWNER_CYBORG})
    placement.providers[node.uuid].inventories = {'PGPU': ProviderInventory(1)}
    assert run(*options, '--format', 'json') == 1
    for line in parse(capsys):
        assert (line['host'], line['uuid']) == (HOST, node.uuid)
        assert line['outcome'].startswith('left: no agent of the host is known')
    assert placement.providers[node.uuid].node.parent_uuid == root.uuid
    assert placement.providers[node.uuid].inventories
    assert run(*options) == 1
    assert 'remove it with --host' in capsys.readouterr().out


def test_audit_named_unknown_host_is_removed(
    run: Run, database: Database, placement: FakePlacement
) -> None:
    (root,) = (provider.node for provider in placement.providers.values())
    node = placement.create_provider(str(uuid4()), f'{HOST}_gpu', root.uuid)
    placement.providers[node.uuid].traits = frozenset({OWNER_CYBORG})
    assert run('--apply', '--host', HOST) == 0
    assert placement.providers[node.uuid].node.parent_uuid is None
    (job,) = database.read(administration.list_jobs)
    assert (job.type, job.key) == (OperationKind.PROVIDER_REMOVAL, HOST)


def test_audit_prune_deletes_providers_and_unused_traits(
    run: Run, database: Database, placement: FakePlacement, capsys: Out
) -> None:
    present = add_device(database, HOST, 'kept')
    removed = add_device(database, HOST, 'gone', traits=['CUSTOM_PHYSNET1'])
    run('--apply')
    remove_devices(database, [removed])
    run('--apply')
    assert placement.providers[removed].traits == {OWNER_CYBORG, EMPTIED}
    placement.names |= {'CUSTOM_OF_THE_OPERATOR', 'CUSTOM_PHYSNET1'}
    capsys.readouterr()
    assert run('--prune') == 0
    output = capsys.readouterr()
    assert 'Restart nova-compute' in output.err
    assert f'custom trait {EMPTIED}: deleted, unused' in output.out
    assert present in placement.providers
    assert removed not in placement.providers
    assert 'CUSTOM_OF_THE_OPERATOR' in placement.names


def test_audit_placement_unreachable_returns_2(
    run: Run, placement: FakePlacement, capsys: Out
) -> None:
    placement.errors = [ServiceUnavailable(what='Placement')]
    assert run() == 2
    assert 'Placement' in capsys.readouterr().out
