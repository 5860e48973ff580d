# SPDX-License-Identifier: Apache-2.0
"""Removal of a host, with a real Placement."""

from cyborg_lite.conductor.hosts.hosts import HostService
from cyborg_lite.conductor.jobs.runner import create_owner
from cyborg_lite.conductor.providers.host_jobs import HostSyncJobs
from cyborg_lite.conductor.providers.sync import PlacementSync
from cyborg_lite.db.ownership import device_owners
from cyborg_lite.db.providers import providers
from cyborg_lite.model.traits import OWNER_CYBORG
from tests.builders.provider_rows import add_device
from tests.builders.service_rows import mark_down
from tests.servers.databases import database_fixture
from tests.servers.placed_host import Host, host
from tests.servers.placement import remote

__all__ = ['host', 'remote']

database = database_fixture('sqlite')


def build_service(host: Host) -> HostService:
    sync = PlacementSync(host.database, host.placement)
    owner = create_owner(10)
    return HostService(host.database, HostSyncJobs(host.database, sync, owner))


def test_forget_leaves_no_provider_row_or_trait(host: Host) -> None:
    second = add_device(host.database, host.name, 'second', num_accelerators=2)
    host.sync()
    mark_down(host.database, host.name)
    removed, result = build_service(host).forget(host.name)
    assert set(removed.provider_uuids) == {host.gpu, second}
    assert not result.problems
    nodes = host.placement.list_tree(host.root.uuid)
    # The compute node belongs to Nova.
    assert [node.uuid for node in nodes] == [host.root.uuid]
    assert OWNER_CYBORG not in host.placement.get_traits(host.root.uuid).traits
    assert host.name not in host.database.read(device_owners.list_hosts)
    assert not host.database.read(providers.list_published_traits)


def test_forget_host_whose_compute_node_is_gone(host: Host) -> None:
    """Nova deletes the provider tree of a compute service that it deletes."""
    host.placement.delete_provider(host.gpu)
    host.placement.delete_provider(host.root.uuid)
    mark_down(host.database, host.name)
    removed, result = build_service(host).forget(host.name)
    assert (removed.devices, result.problems) == (1, ())
    assert host.placement.find_provider_by_name(host.name) is None
    assert not host.database.read(providers.list_published_traits)
