# SPDX-License-Identifier: Apache-2.0
"""Servers whose device profile has a set of groups, through an unmodified Nova."""

import uuid
from functools import partial

from tests.servers.openstack import OpenStack

HOST = 'cmp1'
SINGLES = ('fa4f:0b:00.0', 'fa4f:0c:00.0')
DOUBLE = 'fa4f:0d:00.0'
MEMORY = 7168
"""Memory of the cards of this test in MiB; no other card of the cloud has it."""


def create_profile(cloud: OpenStack, **keys: str) -> str:
    """Create a profile with two groups of one unit; return its name.

    :param keys: further `accel:` keys of both groups
    """
    name = f'profile-{uuid.uuid4().hex[:8]}'
    selector = {'accel:selector': f'device.memory_mib == {MEMORY}'}
    further = {f'accel:{key}': value for key, value in keys.items()}
    group = {'resources:PGPU': '1', **selector, **further}
    body = [{'name': name, 'groups': [group, group]}]
    cloud.accelerator_at('2.6', 'POST', '/device_profiles', body)
    return name


def list_required_traits(cloud: OpenStack, profile: str) -> set[str]:
    """Return the computed traits that the groups of a profile require."""
    (answer,) = cloud.accelerator('GET', f'/device_profiles?name={profile}')[
        'device_profiles'
    ]
    keys = {key for group in answer['groups'] for key in group}
    prefix = 'trait:CUSTOM_CYBORG_SEL_'
    return {key.removeprefix('trait:') for key in keys if key.startswith(prefix)}


def has_traits(cloud: OpenStack, card: str, traits: set[str]) -> bool:
    """Check whether the provider of a card has the traits."""
    path = f'/resource_providers/{cloud.provider(f"{HOST}_{card}")}/traits'
    return traits <= set(cloud.placement('GET', path)['traits'])


def is_gone(cloud: OpenStack, card: str) -> bool:
    """Return True if Placement offers no unit of a card."""
    return not cloud.offers(f'{HOST}_{card}')


def add_card(cloud: OpenStack, card: str, units: int, *profiles: str) -> None:
    """Plug a card in, and wait until Placement offers it to the profiles."""
    cloud.add_card(HOST, card, units=units, memory_mib=MEMORY)
    cloud.until_offered(f'{HOST}_{card}')
    for profile in profiles:
        traits = list_required_traits(cloud, profile)
        assert traits
        condition = partial(has_traits, cloud, card, traits)
        cloud.until(condition, f'{card} has the traits')


def test_server_of_set_gets_units_of_one_card(cloud: OpenStack) -> None:
    loose, together = create_profile(cloud), create_profile(cloud, same='card')
    for card in SINGLES:
        add_card(cloud, card, 1, loose, together)
    refused = cloud.create_server(cloud.create_flavor(together))
    assert refused.wait_built() == 'ERROR'
    assert 'No valid host' in refused.fault()
    # Only the set is the reason: without it, the two cards are enough.
    server = cloud.boot(loose)
    assert {arq['device_rp_uuid'] for arq in server.arqs()} == {
        cloud.provider(f'{HOST}_{card}') for card in SINGLES
    }
    server.delete()
    add_card(cloud, DOUBLE, 2, together)
    server = cloud.boot(together)
    arqs = server.arqs()
    assert [arq['state'] for arq in arqs] == ['Bound', 'Bound']
    provider = cloud.provider(f'{HOST}_{DOUBLE}')
    assert {arq['device_rp_uuid'] for arq in arqs} == {provider}
    handles = [arq['attach_handle_info'] for arq in arqs]
    assert {handle['bus'] for handle in handles} == {'0d'}
    assert {handle['function'] for handle in handles} == {'0', '1'}
    assert server.allocations()[provider]['resources'] == {'PGPU': 2}
    cloud.delete_servers()
    for card in (*SINGLES, DOUBLE):
        cloud.remove_card(HOST, card)
        cloud.until(partial(is_gone, cloud, card), f'{card} is gone')
