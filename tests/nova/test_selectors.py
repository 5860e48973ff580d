# SPDX-License-Identifier: Apache-2.0
"""Servers whose device profile has a selector, through an unmodified Nova."""

from tests.servers.openstack import OpenStack

HOST = 'cmp1'
CARD = 'fa4f:0a:00.0'
NAME = f'{HOST}_{CARD}'


def read_trait(cloud: OpenStack, profile: str) -> str:
    """Return the trait that stands for the selector of a profile."""
    path = f'/device_profiles?name={profile}'
    (answer,) = cloud.accelerator('GET', path)['device_profiles']
    (key,) = (key for key in answer['groups'][0] if key.startswith('trait:'))
    return str(key.removeprefix('trait:'))


def has_trait(cloud: OpenStack, trait: str) -> bool:
    """Check whether the provider of the card has a trait."""
    path = f'/resource_providers/{cloud.provider(NAME)}/traits'
    return trait in cloud.placement('GET', path)['traits']


def test_server_gets_card_that_matches_selector(cloud: OpenStack) -> None:
    cloud.add_card(HOST, CARD, memory_mib=81920)
    cloud.until_offered(NAME)
    profile = cloud.create_selector_profile('device.memory_mib >= 40GiB')
    # Profiles of earlier tests may have traits on the card, too.
    trait = read_trait(cloud, profile)
    cloud.until(lambda: has_trait(cloud, trait), 'the card has the trait')
    server = cloud.boot(profile)
    (arq,) = server.arqs()
    assert (arq['state'], arq['hostname']) == ('Bound', HOST)
    assert arq['device_rp_uuid'] == cloud.provider(NAME)
    server.delete()
    cloud.add_card(HOST, CARD, memory_mib=1024)
    cloud.until(lambda: not has_trait(cloud, trait), 'the card has lost the trait')
    refused = cloud.create_server(cloud.create_flavor(profile))
    assert refused.wait_built() == 'ERROR'
    assert 'No valid host' in refused.fault()
    cloud.remove_card(HOST, CARD)
    cloud.until(lambda: not cloud.offers(NAME), 'the card is withdrawn')
