# SPDX-License-Identifier: Apache-2.0
"""Binds that take longer than nova-compute needs until it reads the ARQs."""

from tests.servers.openstack import HOSTS, OpenStack, Server

SLOW = 6.0  # seconds


def slow_down(cloud: OpenStack) -> None:
    """Let all hosts prepare their cards slowly."""
    for host in HOSTS:
        cloud.delay(host, SLOW)


def boot_and_shelve(cloud: OpenStack) -> Server:
    """Return a server without a host and without ARQs."""
    server = cloud.boot(cloud.create_profile(PGPU=1))
    server.act('shelve')
    server.wait_for('SHELVED_OFFLOADED')
    cloud.until(lambda: not server.arqs(), 'the ARQs are gone')
    return server


def states(server: Server) -> list[str]:
    return [arq['state'] for arq in server.arqs()]


def test_slow_bind_boots(cloud: OpenStack) -> None:
    slow_down(cloud)
    server = cloud.boot(cloud.create_profile(PGPU=1))
    assert states(server) == ['Bound']


def test_slow_bind_unshelves(cloud: OpenStack) -> None:
    """Nova drops the event of the bind: the instance has no host while it waits."""
    server = boot_and_shelve(cloud)
    slow_down(cloud)
    server.act('unshelve')
    assert server.wait_built() == 'ACTIVE', server.fault()
    assert states(server) == ['Bound']


def test_slow_failed_bind_ends_the_unshelve(cloud: OpenStack) -> None:
    server = boot_and_shelve(cloud)
    slow_down(cloud)
    for host in HOSTS:
        cloud.refuse(host)
    server.act('unshelve')
    cloud.until(lambda: server.results('unshelve') == ['Error'], 'the unshelve fails')
    assert server.show()['status'] == 'SHELVED_OFFLOADED'
    path = f'/v2/accelerator_requests?instance={server.uuid}'
    assert (f'GET {path}', 409) in cloud.proxy.refused_requests
    assert server.allocations() == {}
    for host in HOSTS:
        cloud.refuse(host, False)
    server.act('unshelve')
    assert server.wait_built() == 'ACTIVE', server.fault()
    assert states(server) == ['Bound']
