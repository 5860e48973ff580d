# SPDX-License-Identifier: Apache-2.0
"""Servers whose device profile has a selector, through an unmodified Nova."""

from tests.servers.openstack import OpenStack

HOST = 'cmp1'
CARD = 'fa4f:0a:00.0'
NAME = f'{HOST}_{CARD}'


def list_traits(cloud: OpenStack) -> list[str]:
    """Return the traits of the selectors on the provider of the card."""
    path = f'/resource_providers/{cloud.provider(NAME)}/traits'
    traits = cloud.placement('GET', path)['traits']
    return [name for name in traits if name.startswith('CUSTOM_CYBORG_SEL_')]


def test_server_gets_card_that_matches_selector(cloud: OpenStack) -> None:
    cloud.add_card(HOST, CARD, memory_mib=81920)
    cloud.until_offered(NAME)
    profile = cloud.create_selector_profile('device.memory_mib >= 40GiB')
    cloud.until(lambda: list_traits(cloud), 'the card has the trait')
    server = cloud.boot(profile)
    (arq,) = server.arqs()
    assert (arq['state'], arq['hostname']) == ('Bound', HOST)
    assert arq['device_rp_uuid'] == cloud.provider(NAME)
    server.delete()
    cloud.add_card(HOST, CARD, memory_mib=1024)
    cloud.until(lambda: not list_traits(cloud), 'the card has lost the trait')
    refused = cloud.create_server(cloud.create_flavor(profile))
    assert refused.wait_built() == 'ERROR'
    assert 'No valid host' in refused.fault()
    cloud.remove_card(HOST, CARD)
    cloud.until(lambda: not cloud.offers(NAME), 'the card is withdrawn')
