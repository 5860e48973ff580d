# SPDX-License-Identifier: Apache-2.0
"""The life of a server with an accelerator, through a real Nova."""

import time
from typing import Any

import pytest

from tests.servers.keystone import Person
from tests.servers.openstack import LOST_HOST, OpenStack, Server

CARDS = ('cmp1_fa4f:01:00.0', 'cmp2_fa4f:02:00.0')


def handles(server: Server) -> list[tuple[str, str]]:
    """Return state and attach handle of each ARQ."""
    return [(arq['state'], arq['attach_handle_uuid']) for arq in server.arqs()]


def used_cards(cloud: OpenStack) -> int:
    """Return how many units of all cards are allocated."""
    return sum(cloud.usages(card)['PGPU'] for card in CARDS)


def test_spawn_binds_and_delete_releases(cloud: OpenStack) -> None:
    server = cloud.boot(cloud.create_profile(PGPU=1))
    (arq,) = server.arqs()
    assert arq['state'] == 'Bound'
    assert arq['hostname'] == server.host()
    assert arq['device_rp_uuid'] in server.allocations()
    assert used_cards(cloud) == 1
    server.delete()
    assert used_cards(cloud) == 0
    assert server.arqs() == []


@pytest.mark.parametrize(
    ('actions', 'status'),
    [
        ([('reboot', {'type': 'HARD'})], 'ACTIVE'),
        ([('os-stop', None), ('os-start', None)], 'ACTIVE'),
        ([('pause', None), ('unpause', None)], 'ACTIVE'),
    ],
)
def test_power_actions_keep_the_handle(
    cloud: OpenStack, actions: list[tuple[str, Any]], status: str
) -> None:
    server = cloud.boot(cloud.create_profile(PGPU=1))
    before = handles(server)
    middle = {'os-stop': 'SHUTOFF', 'pause': 'PAUSED'}
    for action, body in actions:
        server.act(action, body)
        server.wait_for(middle.get(action, status))
    assert handles(server) == before


def test_rebuild_keeps_the_handle(cloud: OpenStack) -> None:
    server = cloud.boot(cloud.create_profile(PGPU=1))
    before = handles(server)
    server.act('rebuild', {'imageRef': cloud.image})
    assert server.wait_built() == 'ACTIVE', server.fault()
    assert handles(server) == before


@pytest.mark.parametrize('persona', ['owner', 'admin'])
def test_shelve_releases_and_unshelve_binds(cloud: OpenStack, persona: str) -> None:
    server = cloud.boot(cloud.create_profile(PGPU=1), user=cloud.owner)
    user = getattr(cloud, persona)
    server.act('shelve', user=user)
    server.wait_for('SHELVED_OFFLOADED')
    assert used_cards(cloud) == 0
    cloud.until(lambda: not server.arqs(), 'the ARQs are gone')
    server.act('unshelve', user=user)
    assert server.wait_built() == 'ACTIVE', server.fault()
    assert [state for state, _ in handles(server)] == ['Bound']
    # The tenant who owns the server deletes it, whoever unshelved it.
    cloud.compute('DELETE', f'/servers/{server.uuid}', user=cloud.owner)
    server.wait_gone()
    cloud.until(lambda: not server.arqs(), 'the ARQs are gone')


def test_evacuate_binds_on_the_other_host(cloud: OpenStack) -> None:
    server = cloud.boot(cloud.create_profile(VGPU=1), host=LOST_HOST)
    cloud.kill(f'nova-compute-{LOST_HOST}')
    service = cloud.compute_services()[LOST_HOST]['id']
    cloud.compute('PUT', f'/os-services/{service}', {'forced_down': True})
    server.act('evacuate', {'host': 'cmp2'})
    cloud.until(lambda: server.host() == 'cmp2', 'the server moves')
    assert server.wait_built() == 'ACTIVE', server.fault()
    (arq,) = server.arqs()
    assert (arq['state'], arq['hostname']) == ('Bound', 'cmp2')


@pytest.mark.parametrize('delay', [0.0, 0.2, 0.5, 1.0, 2.0])
def test_delete_while_building_leaves_nothing(cloud: OpenStack, delay: float) -> None:
    server = cloud.create_server(cloud.create_flavor(cloud.create_profile(PGPU=1)))
    time.sleep(delay)
    server.delete()

    def reap_arqs() -> bool:
        # Nova forgets ARQs if it deletes the server after it has created them. The
        # conductor does the same for old ARQs.
        cloud.manage('audit', '--apply', '--grace', '0')
        return not cloud.accelerator('GET', '/accelerator_requests')['arqs']

    cloud.until(reap_arqs, 'no ARQ is left')
    cloud.until(lambda: used_cards(cloud) == 0, 'nothing is allocated')


def test_profile_renamed_in_use_unshelves(cloud: OpenStack) -> None:
    profile = cloud.create_profile(PGPU=1)
    server = cloud.boot(profile)
    path = f'/device_profiles/{profile}'
    renamed = [{'op': 'replace', 'path': '/name', 'value': f'{profile}-2'}]
    cloud.accelerator('PATCH', path, renamed)
    server.act('shelve')
    server.wait_for('SHELVED_OFFLOADED')
    server.act('unshelve')
    assert server.wait_built() == 'ACTIVE', server.fault()


def test_profile_disabled_refuses_new_servers(cloud: OpenStack) -> None:
    """Nova refuses them before it schedules; former servers are brought back."""
    profile = cloud.create_profile(PGPU=1)
    server = cloud.boot(profile)
    path = f'/device_profiles/{profile}'
    disabled = [{'op': 'replace', 'path': '/enabled', 'value': False}]
    cloud.accelerator('PATCH', path, disabled)
    body = cloud.describe_server(cloud.create_flavor(profile))
    answer = cloud.ask('compute', 'POST', '/servers', body)
    assert (answer.status_code, profile in answer.text) == (400, True)
    server.act('shelve')
    server.wait_for('SHELVED_OFFLOADED')
    server.act('unshelve')
    assert server.wait_built() == 'ACTIVE', server.fault()


def test_other_tenant_sees_and_changes_no_arqs(cloud: OpenStack) -> None:
    server = cloud.boot(cloud.create_profile(PGPU=1), user=cloud.owner)
    before = server.arqs()
    uuid = before[0]['uuid']
    path = '/accelerator_requests'
    of_server = f'{path}?instance={server.uuid}'
    listing = cloud.accelerator('GET', of_server, user=cloud.foreign_member)
    assert listing['arqs'] == []
    assert len(cloud.accelerator('GET', of_server, user=cloud.owner)['arqs']) == 1
    unbind = {uuid: [{'path': '/hostname', 'op': 'remove'}]}

    def statuses(user: Person) -> list[int]:
        answers = [
            cloud.ask('accelerator', 'GET', f'{path}/{uuid}', user=user),
            cloud.ask('accelerator', 'DELETE', f'{path}/{uuid}', user=user),
            cloud.ask('accelerator', 'DELETE', of_server, user=user),
            cloud.ask('accelerator', 'PATCH', path, unbind, user),
        ]
        return [answer.status_code for answer in answers]

    assert statuses(cloud.foreign_member) == [404, 404, 403, 403]
    # Only Nova changes the ARQs of a server, also for their owner and an operator.
    assert statuses(cloud.owner) == [200, 403, 403, 403]
    assert statuses(cloud.admin) == [200, 403, 403, 403]
    assert server.arqs() == before
