# SPDX-License-Identifier: Apache-2.0
"""Limits of projects: what the users of a real Nova see of the status 403."""

from collections.abc import Iterator
from typing import Final
from uuid import uuid4

import pytest

from tests.servers.keystone import Person
from tests.servers.openstack import HOSTS, OpenStack, Server

_CREATION: Final = ('POST /v2/accelerator_requests', 403)
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


def has_seen(cloud: OpenStack, host: str, server: Server) -> bool:
    """Check whether the nova-compute of a host logs anything about a server."""
    log = cloud.directory / f'nova-compute-{host}.log'
    return server.uuid in log.read_text()


def count_units(server: Server) -> int:
    """Return the number of accelerators that Placement allocates to a server."""
    resources = [provider['resources'] for provider in server.allocations().values()]
    return sum(amounts.get('PGPU', 0) for amounts in resources)


@pytest.mark.parametrize(
    ('resource', 'number', 'cards'),
    [('accelerator_requests', 1, 1), ('class:PGPU', 1, 1), ('class:PGPU', 3, 2)],
)
def test_limit_reached_fails_the_build_at_once(
    limited_cloud: OpenStack, member: Person, resource: str, number: int, cards: int
) -> None:
    cloud = limited_cloud
    limit(cloud, member, resource, number)
    profile = cloud.create_profile(PGPU=cards)
    flavor = cloud.create_flavor(profile)
    first = cloud.create_server(flavor, user=member)
    assert first.wait_built() == 'ACTIVE', first.fault()
    cloud.proxy.refused_requests.clear()
    second = cloud.create_server(flavor, user=member)
    assert second.wait_built() == 'ERROR'

    # One request is refused. Nova tries no other host, and no host has seen the server.
    assert cloud.proxy.refused_requests == [_CREATION]
    assert not any(has_seen(cloud, host, second) for host in HOSTS)
    assert second.host() == 'None'
    # The fault of Nova 34 has only the status; the log of the conductor has the reason.
    path = f'/servers/{second.uuid}'
    message = cloud.compute('GET', path, user=member)['server']['fault']['message']
    assert '403' in message
    (line,) = [
        line for line in cloud.read_output('conductor').splitlines() if profile in line
    ]
    text = f'{resource} would be {2 * cards}'
    assert f'Project {member.project_id} would exceed its limits: {text}' in line
    assert f'the limit is {number}.' in line

    # Nova keeps the allocation of a server in ERROR until the server is deleted.
    assert second.arqs() == []
    assert count_units(second) == cards
    second.delete()
    assert second.allocations() == {}
    arqs = cloud.accelerator('GET', '/accelerator_requests')['arqs']
    assert {arq['instance_uuid'] for arq in arqs} == {first.uuid}

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
