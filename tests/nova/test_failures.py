# SPDX-License-Identifier: Apache-2.0
"""Failed binds, lost conductors and cards that come and go, through a real Nova."""

import pytest

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
    # A request that the killed conductor serves may fail. An accepted bind must end.
    cloud.until(
        lambda: all(server.arqs() for server in servers), 'all binds are accepted'
    )
    cloud.kill('conductor')
    cloud.start_cyborg('conductor', 'conductor')
    statuses = [server.wait_built() for server in servers]
    assert statuses == ['ACTIVE'] * 16
    assert all(bound(server) for server in servers)


def bound(server: Server) -> bool:
    """Check that the server has one ARQ, which is Bound."""
    return [arq['state'] for arq in server.arqs()] == ['Bound']


@pytest.mark.parametrize('method', ['POST', 'PATCH'])
def test_answer_lost_fails_the_build(cloud: OpenStack, method: str) -> None:
    """Nova deletes the ARQs of a lost bind, but knows no ARQ of a lost creation."""
    profile = cloud.create_profile(PGPU=1)
    cloud.proxy.lose(method, '/v2/accelerator_requests')
    server = cloud.create_server(cloud.create_flavor(profile), 'cmp1')
    assert server.wait_built() == 'ERROR'
    assert cloud.proxy.lost_requests[-1].startswith(method)
    cloud.until(lambda: not server.arqs(), 'Nova deletes the ARQs that it knows')
    remaining = cloud.accelerator('GET', '/accelerator_requests')['arqs']
    forgotten = [arq for arq in remaining if arq['state'] != 'Deleting']
    assert [arq['state'] for arq in forgotten] == ['Initial'] * (method == 'POST')
    # The conductor does the same for old ARQs.
    output = cloud.manage('audit', '--apply', '--grace', '0')
    assert all(arq['uuid'] in output for arq in forgotten)
    server.delete()
    assert card_usage(cloud) == 0


def test_answer_lost_of_deletion_leaves_nothing(cloud: OpenStack) -> None:
    server = cloud.boot(cloud.create_profile(PGPU=1), 'cmp1')
    cloud.proxy.lose('DELETE', f'/v2/accelerator_requests?instance={server.uuid}')
    server.delete()
    cloud.until(lambda: not server.arqs(), 'the ARQs are gone')
    assert card_usage(cloud) == 0


def test_agent_away_holds_the_power_on(cloud: OpenStack) -> None:
    """Nova gets 423 until the agent has confirmed the devices of the host."""
    server = cloud.boot(cloud.create_profile(PGPU=1), 'cmp1')
    server.act('os-stop')
    server.wait_for('SHUTOFF')
    cloud.kill('agent-cmp1')
    server.act('os-start')
    cloud.until(lambda: server.results('start') == ['Error'], 'the start fails')
    server.wait_for('SHUTOFF')
    # The Compute API needs only the uuids of the ARQs, to delete them.
    server.act('shelve')
    server.wait_for('SHELVED_OFFLOADED')
    cloud.start_agent('cmp1')
    server.act('unshelve')
    server.wait_for('ACTIVE')


def test_function_that_keeps_its_driver_fails_the_build(cloud: OpenStack) -> None:
    """Nova 34 ignores the key managed and would break the function."""
    cloud.add_card(
        'cmp1', 'fa4f:0b:00.0', managed=False, resource_class='CUSTOM_KEPT', units=1
    )
    cloud.until_offered('cmp1_fa4f:0b:00.0')
    profile = cloud.create_profile(CUSTOM_KEPT=1)
    server = cloud.create_server(cloud.create_flavor(profile), 'cmp1')
    assert server.wait_built() == 'ERROR'
    cloud.until(lambda: not server.arqs(), 'the ARQs are gone')
    cloud.remove_card('cmp1', 'fa4f:0b:00.0')
