# SPDX-License-Identifier: Apache-2.0
"""Failed binds, lost conductors and cards that come and go, through a real Nova."""

import time

from tests.servers.openstack import OpenStack, Server

CARD = 'cmp1_fa4f:01:00.0'


def card_usage(cloud: OpenStack) -> int:
    """Return how many units of the card of the first host are allocated."""
    return cloud.usages(CARD)['PGPU']


def overcommit(cloud: OpenStack, ratio: float) -> None:
    """Let Placement allocate more units of the card than it has."""
    path = f'/resource_providers/{cloud.provider(CARD)}'
    inventory = cloud.placement('GET', f'{path}/inventories')
    inventory['inventories']['PGPU']['allocation_ratio'] = ratio
    cloud.placement('PUT', f'{path}/inventories', inventory)


def test_host_refusal_fails_the_build(cloud: OpenStack) -> None:
    cloud.refuse('cmp1')
    profile = cloud.create_profile(PGPU=1)
    server = cloud.create_server(cloud.create_flavor(profile), 'cmp1')
    assert server.wait_built() == 'ERROR'
    cloud.until(lambda: not server.arqs(), 'the ARQs are gone')
    cloud.until(lambda: card_usage(cloud) == 0, 'nothing is allocated')


def test_overcommit_fails_the_build(cloud: OpenStack) -> None:
    overcommit(cloud, 2.0)
    profile = cloud.create_profile(PGPU=2)
    first = cloud.boot(profile, 'cmp1')
    second = cloud.create_server(cloud.create_flavor(profile), 'cmp1')
    assert second.wait_built() == 'ERROR'
    cloud.until(lambda: not second.arqs(), 'the ARQs are gone')
    assert first.wait_built() == 'ACTIVE'
    overcommit(cloud, 1.0)


def test_failed_unshelve_can_be_repeated(cloud: OpenStack) -> None:
    server = cloud.boot(cloud.create_profile(PGPU=1), 'cmp1')
    server.act('shelve')
    server.wait_for('SHELVED_OFFLOADED')
    for host in ('cmp1', 'cmp2'):
        cloud.refuse(host)
    server.act('unshelve')
    cloud.until(lambda: server.arqs(), 'the ARQs are bound')
    server.wait_for('SHELVED_OFFLOADED', 'ERROR')
    for host in ('cmp1', 'cmp2'):
        cloud.refuse(host, False)
    if server.show()['status'] == 'ERROR':
        server.act('os-resetState', {'state': 'active'})
    server.act('unshelve')
    assert server.wait_built() == 'ACTIVE', server.fault()
    assert [arq['state'] for arq in server.arqs()] == ['Bound']


def test_conductor_killed_binds_all_servers(cloud: OpenStack) -> None:
    profile = cloud.create_profile(FPGA=1)
    flavor = cloud.create_flavor(profile)
    servers = [cloud.create_server(flavor) for _ in range(16)]
    time.sleep(1.5)
    cloud.children.pop('conductor').kill()
    cloud.start_cyborg('conductor', 'conductor')
    statuses = [server.wait_built() for server in servers]
    assert statuses == ['ACTIVE'] * 16
    assert all(bound(server) for server in servers)


def bound(server: Server) -> bool:
    """Check that the server has one ARQ, which is Bound."""
    return [arq['state'] for arq in server.arqs()] == ['Bound']


def test_card_added_and_removed_keeps_plain_builds(cloud: OpenStack) -> None:
    profile = cloud.create_profile(PGPU=2)
    cloud.add_card('cmp1', 'fa4f:09:00.0')
    cloud.provider('cmp1_fa4f:09:00.0')
    servers = [cloud.boot(profile, 'cmp1') for _ in range(2)]
    for server in servers:
        server.delete()
    cloud.remove_card('cmp1', 'fa4f:09:00.0')
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        # nova-compute keeps the provider tree of its host in memory.
        cloud.boot(None, 'cmp1').delete()
