# SPDX-License-Identifier: Apache-2.0
"""Removal of a host, with a real Placement.

nova-compute fails each build while its cached tree has a provider that is deleted. So
the providers leave the tree first, and are deleted when Nova has read the tree again.
"""

from uuid import uuid4

import pytest

from cyborg_lite.conductor.hosts.hosts import HostService
from cyborg_lite.conductor.jobs.runner import create_owner
from cyborg_lite.conductor.providers.host_jobs import (
    HostSyncJobs,
    ProviderRemovalHandler,
)
from cyborg_lite.conductor.providers.sync import (
    PlacementSync,
    PlacementSyncHandler,
    SyncMode,
)
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.hosts import hosts
from cyborg_lite.db.jobs import administration, queue
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.db.providers import providers
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.traits import EMPTIED, OWNER_CYBORG
from cyborg_lite.rpc.context import RequestContext
from tests.builders.provider_rows import add_device, change_device
from tests.builders.service_rows import mark_down
from tests.servers.databases import database_fixture
from tests.servers.placed_host import Host, host, is_right
from tests.servers.placement import remote

__all__ = ['host', 'remote']

database = database_fixture('sqlite')
OWNER = create_owner(10)


def build_sync_jobs(host: Host) -> HostSyncJobs:
    return HostSyncJobs(
        host.database, PlacementSync(host.database, host.placement), OWNER
    )


def forget(host: Host) -> None:
    mark_down(host.database, host.name)
    service = HostService(host.database, build_sync_jobs(host))
    service.drain_and_forget(RequestContext(), host.name, drain=False)


def delete_later(host: Host) -> None:
    """Run the job that deletes the providers, as if its wait had ended."""
    job = host.database.write(
        queue.lease_keyed_job, OWNER, OperationKind.PROVIDER_REMOVAL, host.name
    )
    assert job is not None
    ProviderRemovalHandler(host.database, build_sync_jobs(host)).run(job)
    assert host.database.read(administration.list_jobs) == ()


def list_tree(host: Host) -> list[str]:
    return [node.uuid for node in host.placement.list_tree(host.root.uuid)]


def test_forget_detaches_providers_and_deletes_them_later(host: Host) -> None:
    second = add_device(host.database, host.name, 'second', num_accelerators=2)
    host.sync()
    forget(host)
    # The compute node belongs to Nova.
    assert list_tree(host) == [host.root.uuid]
    assert OWNER_CYBORG not in host.placement.get_traits(host.root.uuid).traits
    assert host.name not in host.database.read(device_owners.list_hosts)
    for uuid in host.gpu, second:
        provider = host.read(uuid)
        assert (provider.inventories, provider.node.parent_uuid) == ({}, None)
        assert provider.traits == {OWNER_CYBORG, EMPTIED}
    (job,) = host.database.read(administration.list_jobs)
    assert (job.type, job.due_in > 599) == (OperationKind.PROVIDER_REMOVAL, True)
    delete_later(host)
    for uuid in host.gpu, second:
        assert host.placement.find_provider(uuid) is None
    assert not host.database.read(providers.list_published_traits)


@pytest.mark.parametrize('deletes', [False, True])
def test_forgotten_host_returns_with_its_inventory(host: Host, deletes: bool) -> None:
    forget(host)
    if deletes:
        delete_later(host)
    gpu = add_device(host.database, host.name, '0000:3b:00.0', num_accelerators=4)
    change_device(host.database, gpu, control_address='0000:3b:00.0')
    assert gpu == host.gpu
    host.sync()
    assert is_right(host)
    if not deletes:
        delete_later(host)
        assert is_right(host)


def test_forget_is_completed_after_crash(host: Host, database: Database) -> None:
    """The first conductor has detached the provider, and has not ended its job."""
    mark_down(database, host.name)
    database.write(hosts.forget_host, host.name)
    PlacementSync(database, host.placement).sync(host.name)
    assert list_tree(host) == [host.root.uuid]
    job = database.write(
        queue.lease_keyed_job, OWNER, OperationKind.RECONCILE, host.name
    )
    assert job is not None
    sync = PlacementSync(database, host.placement)
    PlacementSyncHandler(database, sync).sync(job, SyncMode())
    delete_later(host)
    assert host.placement.find_provider(host.gpu) is None


def test_forget_keeps_providers_of_other_hosts(host: Host) -> None:
    foreign = host.placement.create_provider(str(uuid4()), f'x{host.name}_card', None)
    host.placement.create_custom_names((), [EMPTIED])
    host.placement.set_traits(foreign.uuid, foreign.generation, {OWNER_CYBORG, EMPTIED})
    forget(host)
    delete_later(host)
    assert host.placement.find_provider(foreign.uuid) is not None


def test_forget_host_whose_compute_node_is_gone(host: Host) -> None:
    """Nova deletes the provider tree of a compute service that it deletes."""
    host.placement.delete_provider(host.gpu)
    host.placement.delete_provider(host.root.uuid)
    forget(host)
    assert host.placement.find_provider_by_name(host.name) is None
    assert not host.database.read(providers.list_published_traits)
    delete_later(host)
