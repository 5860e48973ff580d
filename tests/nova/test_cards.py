# SPDX-License-Identifier: Apache-2.0
"""Cards that come, go, change and break, while Nova uses their host.

nova-compute keeps the provider tree of its host in memory. A provider that disappears
makes it fail the builds of all servers on the host.
"""

from collections.abc import Callable

import pytest

from tests.servers.openstack import OpenStack

HOST = 'cmp1'
CARD = 'fa4f:09:00.0'
NAME = f'{HOST}_{CARD}'
MOVED = 'fa4f:0c:00.0'
SERIAL = 'SN-1'


def count_units(cloud: OpenStack) -> int:
    """Return the inventory of the provider of the card."""
    units: int = cloud.inventory(NAME).get('PGPU', {}).get('total', 0)
    return units


def swap(cloud: OpenStack) -> None:
    """Replace the card with another one."""
    cloud.add_card(HOST, CARD, serial='another', units=1)
    cloud.until(lambda: count_units(cloud) == 1, 'it is replaced')


def move(cloud: OpenStack) -> None:
    """Move the card to another slot; its provider keeps the name."""
    cloud.remove_card(HOST, CARD)
    cloud.add_card(HOST, MOVED, serial=SERIAL, units=3)
    cloud.until(lambda: count_units(cloud) == 3, 'it is moved')


def remove(cloud: OpenStack) -> None:
    """Pull the card."""
    cloud.remove_card(HOST, CARD)
    cloud.until(lambda: not cloud.offers(NAME), 'the card is withdrawn')


def hand_over(cloud: OpenStack) -> None:
    """Give the card to Nova."""
    file = cloud.nova_file(HOST)
    file.write_text(f'[pci]\ndevice_spec = {{"address": "{CARD}"}}\n')
    cloud.until(lambda: not cloud.offers(NAME), 'the card is withdrawn')


@pytest.mark.parametrize('change', [swap, move, remove, hand_over])
def test_change_of_card_keeps_plain_builds(
    cloud: OpenStack, change: Callable[[OpenStack], None]
) -> None:
    cloud.add_card(HOST, CARD, serial=SERIAL)
    cloud.until_offered(NAME)
    # nova-compute reads the tree with the card while it builds.
    cloud.boot(None, HOST).delete()
    change(cloud)
    for _ in range(3):
        cloud.boot(None, HOST).delete()
    for address in (CARD, MOVED):
        cloud.remove_card(HOST, address)
    cloud.nova_file(HOST).unlink(missing_ok=True)
    cloud.until(lambda: not cloud.offers(NAME), 'the card is withdrawn')
