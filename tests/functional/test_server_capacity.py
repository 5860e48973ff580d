# SPDX-License-Identifier: Apache-2.0
"""Capacities of device profiles equal what a real Placement gives.

Servers are claimed one by one with all groups in one query, as Nova does, and every
candidate of Placement is tried. The longest series of claims is the capacity.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.capacity.explanations import ExplanationService
from cyborg_lite.conductor.providers.sync import PlacementSync
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import now
from cyborg_lite.db.profiles import profiles
from cyborg_lite.model.capacity.server_capacity import ProfileCapacity
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, Group
from tests.builders.provider_rows import add_device, change_device
from tests.builders.rows import add_handles
from tests.servers.databases import database_fixture
from tests.servers.placement import CountedRemote, remote

__all__ = ['remote']

database = database_fixture('sqlite')

Groups = list[dict[str, str]]
Units = Mapping[str, Mapping[str, int]]  # by provider and resource class

FAST = 'HW_GPU_API_VULKAN'
"""A standard trait."""


class Fleet:
    """Hosts with cards in a real Placement, and servers that are claimed on them."""

    def __init__(self, database: Database, remote: CountedRemote) -> None:
        self.database = database
        self.remote = remote
        self.placement = Placement(remote)
        self.hosts: dict[str, str] = {}
        """The uuids of the compute nodes, by name."""

    def add_host(self, cards: list[tuple[str, int, bool]]) -> str:
        """Add a host; a card has a resource class, units and maybe the trait."""
        host = f'compute-{uuid4().hex[:8]}'
        root = self.placement.create_provider(str(uuid4()), host, None)
        for slot, (name, units, is_fast) in enumerate(cards):
            address = f'0000:{slot:02x}:00.0'
            provider = add_device(
                self.database,
                host,
                address,
                resource_class=name,
                traits=[FAST] if is_fast else [],
                num_accelerators=units,
            )
            change_device(self.database, provider, control_address=address)
            add_handles(self.database, provider, units)
        self.hosts[host] = root.uuid
        PlacementSync(self.database, self.placement).sync(host)
        return host

    def count(self, groups: Groups) -> ProfileCapacity:
        profile = DeviceProfile(str(uuid4()), f'p-{uuid4()}', None, (*groups,), now())
        self.database.write(profiles.create_profile, profile)
        explaining = ExplanationService(self.database, self.placement)
        return explaining.count_capacity(None, profile.uuid, None)

    def list_choices(self, host: str, groups: Groups) -> list[Units]:
        """Return the ways in which Placement would allocate one server on a host."""
        query = {'group_policy': 'none'}
        for number, keys in enumerate(groups, 1):
            group = Group.parse(keys).requirements
            amounts = (f'{name}:{units}' for name, units in group.amounts)
            query[f'resources{number}'] = ','.join(amounts)
            query[f'in_tree{number}'] = self.hosts[host]
            if group.required:
                query[f'required{number}'] = ','.join(group.required)
        remote = self.remote.with_microversion('1.36')
        answer = remote.send('GET', f'/allocation_candidates?{urlencode(query)}').json()
        choices = (
            {
                provider: item['resources']
                for provider, item in request['allocations'].items()
            }
            for request in answer['allocation_requests']
        )
        return list({_freeze(choice): choice for choice in choices}.values())

    def claim(self, choice: Units) -> str:
        server = str(uuid4())
        body = {
            'allocations': {
                provider: {'resources': dict(resources)}
                for provider, resources in choice.items()
            },
            'project_id': 'project',
            'user_id': 'user',
            'consumer_generation': None,
        }
        self.remote.send('PUT', f'/allocations/{server}', body)
        return server

    def free(self, server: str) -> None:
        self.remote.send('DELETE', f'/allocations/{server}')

    def find_longest_series(self, host: str, groups: Groups) -> int:
        """Return the length of the longest series of servers on a host."""
        lengths: dict[Any, int] = {}

        def extend(used: dict[tuple[str, str], int]) -> int:
            state = frozenset(used.items())
            if state not in lengths:
                lengths[state] = 0
                for choice in self.list_choices(host, groups):
                    server = self.claim(choice)
                    usages = dict(used)
                    for provider, resources in choice.items():
                        for name, units in resources.items():
                            key = provider, name
                            usages[key] = usages.get(key, 0) + units
                    lengths[state] = max(lengths[state], 1 + extend(usages))
                    self.free(server)
            return lengths[state]

        return extend({})


def _freeze(choice: Units) -> frozenset[Any]:
    return frozenset(
        (provider, *sorted(resources.items())) for provider, resources in choice.items()
    )


@pytest.fixture
def fleet(database: Database, remote: CountedRemote) -> Fleet:
    return Fleet(database, remote)


CARDS = st.lists(
    st.tuples(st.sampled_from(['PGPU', 'VGPU']), st.integers(1, 3), st.booleans()),
    max_size=3,
)
GROUPS = st.lists(
    st.tuples(st.sampled_from(['PGPU', 'VGPU']), st.integers(1, 2), st.booleans()),
    min_size=1,
    max_size=3,
)


def build_groups(drawn: list[tuple[str, int, bool]]) -> Groups:
    return [
        {f'resources:{name}': str(units)}
        | ({f'trait:{FAST}': 'required'} if is_fast else {})
        for name, units, is_fast in drawn
    ]


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(fleet_cards=st.lists(CARDS, min_size=1, max_size=2), drawn=GROUPS)
def test_capacity_never_exceeds_longest_series_of_claims(
    fleet: Fleet,
    fleet_cards: list[list[tuple[str, int, bool]]],
    drawn: list[tuple[str, int, bool]],
) -> None:
    groups = build_groups(drawn)
    names = [fleet.add_host(cards) for cards in fleet_cards]
    capacity = fleet.count(groups)
    counts = {host.hostname: host for host in capacity.hosts}
    for name, cards in zip(names, fleet_cards, strict=True):
        expected = fleet.find_longest_series(name, groups)
        if cards:  # the service knows hosts by their devices
            count = counts[name]
            assert count.servers <= expected
            assert count.servers == expected or not count.is_exact
        else:
            assert expected == 0
    assert capacity.servers == sum(host.servers for host in capacity.hosts)
