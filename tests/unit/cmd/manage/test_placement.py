# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-manage placement audit`` with a fake Placement."""

import json
from uuid import uuid4

import pytest

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
from tests.unit.cmd.manage.conftest import Manage


@pytest.fixture
def run(manage: Manage, placement: FakePlacement) -> Manage:
    """Return a function that runs the command with further arguments."""
    return lambda *arguments: manage('placement', 'audit', *arguments)


def test_audit_without_difference_returns_0(run: Manage, database: Database) -> None:
    add_device(database, HOST, 'gpu')
    run('--apply')
    assert run() == (0, 'Placement is up to date for 1 host.\n', '')


def test_audit_of_restored_database_is_not_up_to_date(
    run: Manage, database: Database, placement: FakePlacement
) -> None:
    database.write(incarnations.begin_quarantine, NO_MARK, 'Step 5 is lost.')
    status, out, _ = run()
    assert (status, 'Step 5 is lost.' in out) == (2, True)
    rp_uuid = add_device(database, HOST, 'gpu')
    assert run('--apply')[0] == 2
    assert rp_uuid not in placement.providers


def test_audit_difference_is_listed_and_not_repaired(
    run: Manage, database: Database, placement: FakePlacement
) -> None:
    rp_uuid = add_device(database, HOST, 'gpu')
    status, out, _ = run()
    assert status == 1
    heading, *rows = out.splitlines()
    assert heading.split() == ['HOST', 'PROVIDER', 'OUTCOME', 'DIFFERENCE']
    assert rows[0].split()[:3] == [HOST, f'{HOST}_gpu', 'to']
    assert rows[0].endswith('created')
    assert rp_uuid not in placement.providers


def test_audit_problem_is_left_and_returns_1(
    run: Manage, database: Database, placement: FakePlacement
) -> None:
    """A resource class that a guest uses cannot be removed."""
    rp_uuid = add_device(database, HOST, 'gpu')
    run('--apply')
    placement.allocate(rp_uuid, {'PGPU': 1})
    change_deployable(database, rp_uuid, resource_class='VGPU')
    status, out, _ = run('--apply', '--format', 'json')
    outcomes = {line['outcome']: line['what'] for line in json.loads(out)}
    assert status == 1
    assert 'PGPU is obsolete, but allocated' in outcomes['left as it is']
    assert 'not changed' in run('--apply')[1]


def test_audit_one_host_unreachable_returns_2(
    run: Manage, database: Database, placement: FakePlacement
) -> None:
    add_device(database, HOST, 'gpu')
    add_device(database, 'compute-2', 'gpu')  # without a compute node
    status, out, _ = run('--format', 'json')
    lines = {line['host']: line for line in json.loads(out)}
    assert status == 2
    assert lines['compute-2']['outcome'] == 'cannot be told'
    assert lines[HOST]['outcome'] == 'to be repaired'


@pytest.mark.parametrize('options', [(), ('--apply',), ('--prune',)])
def test_audit_unknown_host_is_never_changed(
    run: Manage, placement: FakePlacement, options: tuple[str, ...]
) -> None:
    """A host without devices may belong to another deployment."""
    (root,) = (provider.node for provider in placement.providers.values())
    node = placement.create_provider(str(uuid4()), f'{HOST}_gpu', root.uuid)
    placement.providers[node.uuid].traits = frozenset({OWNER_CYBORG})
    placement.providers[node.uuid].inventories = {'PGPU': ProviderInventory(1)}
    status, out, _ = run(*options, '--format', 'json')
    assert status == 1
    for line in json.loads(out):
        assert (line['host'], line['uuid']) == (HOST, node.uuid)
        assert line['outcome'].startswith('left: no agent of the host is known')
    assert placement.providers[node.uuid].node.parent_uuid == root.uuid
    assert placement.providers[node.uuid].inventories
    assert 'remove it with --host' in run(*options)[1]


def test_audit_named_unknown_host_is_removed(
    run: Manage, database: Database, placement: FakePlacement
) -> None:
    (root,) = (provider.node for provider in placement.providers.values())
    node = placement.create_provider(str(uuid4()), f'{HOST}_gpu', root.uuid)
    placement.providers[node.uuid].traits = frozenset({OWNER_CYBORG})
    assert run('--apply', '--host', HOST)[0] == 0
    assert placement.providers[node.uuid].node.parent_uuid is None
    (job,) = database.read(administration.list_jobs)
    assert (job.type, job.key) == (OperationKind.PROVIDER_REMOVAL, HOST)


def test_audit_prune_deletes_providers_and_unused_traits(
    run: Manage, database: Database, placement: FakePlacement
) -> None:
    present = add_device(database, HOST, 'kept')
    removed = add_device(database, HOST, 'gone', traits=['CUSTOM_PHYSNET1'])
    run('--apply')
    remove_devices(database, [removed])
    run('--apply')
    assert placement.providers[removed].traits == {OWNER_CYBORG, EMPTIED}
    placement.names |= {'CUSTOM_OF_THE_OPERATOR', 'CUSTOM_PHYSNET1'}
    status, out, errors = run('--prune')
    assert (status, 'Restart nova-compute' in errors) == (0, True)
    assert f'custom trait {EMPTIED}: deleted, unused' in out
    assert present in placement.providers
    assert removed not in placement.providers
    assert 'CUSTOM_OF_THE_OPERATOR' in placement.names


def test_audit_placement_unreachable_returns_2(
    run: Manage, placement: FakePlacement
) -> None:
    placement.errors = [ServiceUnavailable(what='Placement')]
    status, out, _ = run()
    assert (status, 'Placement' in out) == (2, True)
