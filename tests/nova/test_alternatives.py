# SPDX-License-Identifier: Apache-2.0
"""Servers whose device profile has alternatives, through an unmodified Nova."""

from functools import partial
from typing import Any

from tests.servers.openstack import OpenStack, Server

HOST = 'cmp1'
LARGE, SMALL = 'fa4f:0b:00.0', 'fa4f:0c:00.0'


def read_arq(cloud: OpenStack, server: Server) -> dict[str, Any]:
    """Return the only ARQ of a server, as clients of the newest microversion see it."""
    path = f'/accelerator_requests?instance={server.uuid}'
    (arq,) = cloud.accelerator_at('2.6', 'GET', path)['arqs']
    return dict(arq)


def list_traits(cloud: OpenStack, card: str) -> list[str]:
    """Return the traits of the selectors on the provider of a card."""
    path = f'/resource_providers/{cloud.provider(f"{HOST}_{card}")}/traits'
    traits = cloud.placement('GET', path)['traits']
    return [name for name in traits if name.startswith('CUSTOM_CYBORG_SEL_')]


def is_gone(cloud: OpenStack, card: str) -> bool:
    """Return True if Placement offers no unit of a card."""
    return not cloud.offers(f'{HOST}_{card}')


def until_chosen(cloud: OpenStack, profile: str, card: str) -> None:
    """Wait until Nova reads the alternative of a card: a former choice expires."""
    (trait,) = list_traits(cloud, card)
    path = f'/device_profiles?name={profile}'

    def is_chosen() -> bool:
        (answer,) = cloud.accelerator('GET', path)['device_profiles']
        return f'trait:{trait}' in answer['groups'][0]

    cloud.until(is_chosen, f'Nova reads the alternative of {card}')


def test_server_gets_second_alternative_after_first(cloud: OpenStack) -> None:
    cards = {LARGE: 81920, SMALL: 1024}
    for card, memory in cards.items():
        cloud.add_card(HOST, card, units=1, memory_mib=memory)
        cloud.until_offered(f'{HOST}_{card}')
    profile = cloud.create_selector_profile(
        'device.memory_mib >= 40GiB', 'device.memory_mib == 1024'
    )
    for card in cards:
        cloud.until(partial(list_traits, cloud, card), f'{card} has a trait')
    requests = []
    for card in cards:
        until_chosen(cloud, profile, card)
        requests.append(read_arq(cloud, cloud.boot(profile)))
    assert [(arq['state'], arq['alternative']) for arq in requests] == [
        ('Bound', 0),
        ('Bound', 1),
    ]
    assert [arq['device_rp_uuid'] for arq in requests] == [
        cloud.provider(f'{HOST}_{card}') for card in cards
    ]
    refused = cloud.create_server(cloud.create_flavor(profile))
    assert refused.wait_built() == 'ERROR'
    assert 'No valid host' in refused.fault()
    cloud.delete_servers()
    for card in cards:
        cloud.remove_card(HOST, card)
        cloud.until(partial(is_gone, cloud, card), 'the card is gone')
