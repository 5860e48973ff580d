# SPDX-License-Identifier: Apache-2.0
"""Limits of projects: what the users of a real Nova see of them."""

from collections.abc import Iterator
from typing import Final
from uuid import uuid4

import pytest

from tests.servers.keystone import Person
from tests.servers.openstack import OpenStack, Server

_UNLIMITED: Final = 10


@pytest.fixture(scope='module')
def limited_cloud(cloud: OpenStack) -> Iterator[OpenStack]:
    """Return the cloud with a conductor that checks limits."""
    service = cloud.services['accelerator']
    for resource in ('accelerator_requests', 'class:PGPU'):
        cloud.keystone.register_limit(service, resource, _UNLIMITED)
    cloud.restart_conductor(cloud.keystone.create_limits_reader('accelerator'))
    yield cloud
    cloud.restart_conductor()


@pytest.fixture
def member(cloud: OpenStack) -> Person:
    """Return a member of a new project."""
    name = f'limited-{uuid4().hex[:8]}'
    return cloud.keystone.person(name, cloud.keystone.project(name), 'member')


def limit(cloud: OpenStack, member: Person, resource: str, number: int) -> None:
    """Limit the project of a member."""
    service = cloud.services['accelerator']
    cloud.keystone.limit_project(service, member.project_id, resource, number)


def count_units(server: Server) -> int:
    """Return the number of accelerators that Placement allocates to a server."""
    resources = [provider['resources'] for provider in server.allocations().values()]
    return sum(amounts.get('PGPU', 0) for amounts in resources)


@pytest.mark.parametrize(
    ('resource', 'number', 'cards'),
    [('accelerator_requests', 1, 1), ('class:PGPU', 1, 1), ('class:PGPU', 3, 2)],
)
def test_limit_reached_refuses_the_build_at_once(
    limited_cloud: OpenStack, member: Person, resource: str, number: int, cards: int
) -> None:
    cloud = limited_cloud
    limit(cloud, member, resource, number)
    profile = cloud.create_profile(PGPU=cards)
    flavor = cloud.create_flavor(profile)
    first = cloud.create_server(flavor, user=member)
    assert first.wait_built() == 'ACTIVE', first.fault()
    cloud.proxy.refused_requests.clear()
    body = cloud.describe_server(flavor)
    answer = cloud.ask('compute', 'POST', '/servers', body, user=member)

    # nova-api finds no device profile: there is no server and no allocation.
    assert answer.status_code == 400
    assert profile in answer.json()['badRequest']['message']
    servers = cloud.compute('GET', '/servers', user=member)['servers']
    assert [server['id'] for server in servers] == [first.uuid]
    assert cloud.proxy.refused_requests == []
    assert count_units(first) == cards

    first.delete()
    cloud.until(lambda: not first.arqs(), 'the ARQs are gone')
    third = cloud.create_server(flavor, user=member)
    assert third.wait_built() == 'ACTIVE', third.fault()


def test_limit_reached_refuses_unshelve(
    limited_cloud: OpenStack, member: Person
) -> None:
    cloud = limited_cloud
    limit(cloud, member, 'class:PGPU', 1)
    profile = cloud.create_profile(PGPU=1)
    shelved = cloud.boot(profile, user=member)
    shelved.act('shelve', user=member)
    shelved.wait_for('SHELVED_OFFLOADED')
    cloud.until(lambda: not shelved.arqs(), 'the ARQs are gone')
    rival = cloud.boot(profile, user=member)
    shelved.act('unshelve', user=member)
    cloud.until(lambda: shelved.results('unshelve') == ['Error'], 'the unshelve fails')
    assert shelved.wait_for('SHELVED_OFFLOADED', 'ERROR') == 'SHELVED_OFFLOADED'
    assert shelved.arqs() == []
    rival.delete()
    cloud.until(lambda: not rival.arqs(), 'the ARQs are gone')
    shelved.act('unshelve', user=member)
    assert shelved.wait_for('ACTIVE', 'ERROR') == 'ACTIVE', shelved.fault()
    assert [arq['state'] for arq in shelved.arqs()] == ['Bound']


def test_limit_exceeded_by_several_servers_of_one_request(
    limited_cloud: OpenStack, member: Person
) -> None:
    """Nova may set all servers of the request to ERROR, also those within the limit."""
    cloud = limited_cloud
    limit(cloud, member, 'class:PGPU', 1)
    body = cloud.describe_server(cloud.create_flavor(cloud.create_profile(PGPU=1)))
    body['server'] |= {'min_count': '2', 'max_count': '2'}
    cloud.compute('POST', '/servers', body, member)
    rows = cloud.compute('GET', '/servers', user=member)['servers']
    servers = [Server(cloud, row['id']) for row in rows]
    statuses = [server.wait_built() for server in servers]
    assert 'ERROR' in statuses
    assert sum(len(server.arqs()) for server in servers) <= 1
    for server in servers:
        server.delete()
    assert all(server.allocations() == {} for server in servers)
