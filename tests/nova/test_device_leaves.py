# SPDX-License-Identifier: Apache-2.0
"""A card that leaves its host while a server uses it, through a real Nova."""

from tests.servers.openstack import OpenStack, Server

HOST, SLOT, OTHER_SLOT = 'cmp1', 'fa4f:0a:00.0', 'fa4f:0b:00.0'
RESOURCE_CLASS, SERIAL = 'CUSTOM_LEAVING_CARD', 'serial-of-the-card'


def plug(cloud: OpenStack, slot: str) -> None:
    cloud.add_card(HOST, slot, resource_class=RESOURCE_CLASS, serial=SERIAL)


def wait_for_state(cloud: OpenStack, server: Server, state: str) -> dict[str, str]:
    """Wait until the only ARQ of the server has the state; return its handle."""

    def has_state() -> bool:
        return [arq['state'] for arq in server.arqs()] == [state]

    cloud.until(has_state, f'the ARQ is {state}')
    return dict(server.arqs()[0]['attach_handle_info'])


def test_lost_card_refuses_start_and_returns(cloud: OpenStack) -> None:
    plug(cloud, SLOT)
    cloud.until_offered(f'{HOST}_{SLOT}')
    server = cloud.boot(cloud.create_profile(**{RESOURCE_CLASS: 1}), HOST)
    server.act('os-stop')
    server.wait_for('SHUTOFF')
    cloud.remove_card(HOST, SLOT)
    wait_for_state(cloud, server, 'Unknown')
    assert 'gone' in server.arqs()[0]['status_reason']
    server.act('os-start')
    cloud.until(lambda: server.results('start') == ['Error'], 'the start is refused')
    assert server.wait_for('SHUTOFF') == 'SHUTOFF'

    plug(cloud, OTHER_SLOT)
    handle = wait_for_state(cloud, server, 'Bound')
    assert handle['bus'] == OTHER_SLOT.split(':')[1]
    server.act('os-start')
    assert server.wait_for('ACTIVE') == 'ACTIVE'

    cloud.remove_card(HOST, OTHER_SLOT)
    wait_for_state(cloud, server, 'Unknown')
    server.act('shelve')
    assert server.wait_for('SHELVED_OFFLOADED') == 'SHELVED_OFFLOADED'
    cloud.until(lambda: not server.arqs(), 'the ARQs are gone')
    server.delete()
