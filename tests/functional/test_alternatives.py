# SPDX-License-Identifier: Apache-2.0
"""Alternatives of device profiles with a real Placement."""

import random
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from uuid import uuid4

import pytest
from sqlalchemy import update

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.capacity.explanations import ExplanationService
from cyborg_lite.conductor.profiles.device_profiles import AlternativeService
from cyborg_lite.db.arqs import alternatives, arqs
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.core.tables import ProfilePromise
from cyborg_lite.errors.profiles import ImpossibleDeviceProfile
from cyborg_lite.model.profiles.alternatives import apply_choice
from cyborg_lite.model.profiles.device_profiles import DeviceProfile, Group
from cyborg_lite.rpc.context import RequestContext
from tests.builders.alternatives import build_profile, create_profile
from tests.builders.provider_rows import add_device
from tests.builders.rows import add_handles
from tests.builders.service_rows import mark_up
from tests.servers.databases import database_fixture
from tests.servers.placed_host import Host, host
from tests.servers.placement import remote

__all__ = ['host', 'remote']

database = database_fixture('sqlite')

ADMIN = RequestContext(is_admin=True, project_id='project')
NOVA = RequestContext(is_admin=True, project_id='project', service_request=True)


@dataclass
class Cards:
    """Two cards of a host, with one unit and a trait of its own each."""

    host: Host
    large: str  # uuid of the provider
    small: str
    large_group: dict[str, str]
    small_group: dict[str, str]

    def choose(self, uuid: str) -> tuple[int, ...]:
        """Return a new choice of a profile."""
        placement = self.host.placement
        service = AlternativeService(self.host.database, placement, 0)
        return service.choose(ADMIN, uuid)


@pytest.fixture
def cards(database: Database, host: Host) -> Cards:
    traits = [f'CUSTOM_{size}_{uuid4().hex[:8].upper()}' for size in ('LARGE', 'SMALL')]
    mark_up(database, host.name)
    providers = [
        add_device(database, host.name, trait, traits=[trait]) for trait in traits
    ]
    for provider in providers:
        add_handles(database, provider, 1)
    host.sync()
    large, small = (
        {'resources:PGPU': '1', f'trait:{trait}': 'required'} for trait in traits
    )
    (large_uuid, small_uuid) = providers
    return Cards(host, large_uuid, small_uuid, large, small)


def test_choice_of_groups_needs_one_host(database: Database, cards: Cards) -> None:
    providers = cards.large_group, cards.small_group
    profile = create_profile(database, providers, providers)
    # Each card has one unit, so the groups cannot both use the large card.
    assert cards.choose(profile.uuid) == (0, 1)
    second_host = f'compute-{uuid4().hex[:8]}'
    Placement(cards.host.remote).create_provider(str(uuid4()), second_host, None)
    distant = f'CUSTOM_{uuid4().hex[:8].upper()}'
    mark_up(database, second_host)
    add_device(database, second_host, distant, traits=[distant])
    Host(cards.host.remote, database, second_host, cards.host.root, '').sync()
    far = {'resources:PGPU': '1', f'trait:{distant}': 'required'}
    profile = create_profile(database, (far, cards.large_group), (cards.small_group,))
    assert cards.choose(profile.uuid) == (1, 0)


def test_check_accepts_group_with_possible_alternative(
    database: Database, cards: Cards
) -> None:
    explaining = ExplanationService(database, cards.host.placement)
    impossible = {'resources:CUSTOM_NEVER_SEEN': '1'}
    for options in ((impossible, cards.small_group), (cards.small_group, impossible)):
        profile = build_profile((cards.large_group,), options)
        explaining.check(profile)
    profile = build_profile((cards.large_group,), (impossible, impossible))
    with pytest.raises(ImpossibleDeviceProfile, match=r'groups\[1\]'):
        explaining.check(profile)


@dataclass
class Builds:
    """Concurrent builds of instances with one profile, as Nova runs them."""

    database: Database
    host: Host
    profile: DeviceProfile

    def run(self, number: int, seed: int) -> int:
        """Run builds at once; return how many of them get a unit."""
        choose = random.Random(seed)
        pauses = [choose.uniform(0, 0.05) for _ in range(number)]
        start = threading.Barrier(number)

        def build(pause: float) -> bool:
            start.wait()
            chosen = self.read_profile()
            threading.Event().wait(pause)  # until the scheduler has its turn
            return self.schedule(chosen)

        with ThreadPoolExecutor(number) as pool:
            return sum(pool.map(build, pauses))

    def read_profile(self) -> DeviceProfile:
        service = AlternativeService(self.database, self.host.placement, 5)
        choice = service.choose(NOVA, self.profile.uuid)
        return apply_choice(self.profile, choice)

    def schedule(self, chosen: DeviceProfile) -> bool:
        """Allocate a unit for the groups that Nova has read, and create the ARQ."""
        group = Group.parse(chosen.groups[0]).requirements
        filters = group.required, group.forbidden
        while offers := self.host.placement.list_candidates(
            dict(group.amounts), *filters
        ):
            if self.host.try_allocate(random.choice(list(offers))):
                self.database.write(arqs.create_arqs, self.profile.name, 'project')
                return True
        return False  # Nova: No valid host was found


def build_cards(
    database: Database, host: Host, numbers: Sequence[int]
) -> list[dict[str, str]]:
    """Add cards of several models; return the group of each model."""
    mark_up(database, host.name)
    groups = []
    for number in numbers:
        trait = f'CUSTOM_MODEL_{uuid4().hex[:8].upper()}'
        for index in range(number):
            part = f'{trait}_{index}'
            provider = add_device(database, host.name, part, traits=[trait])
            add_handles(database, provider, 1)
        groups.append({'resources:PGPU': '1', f'trait:{trait}': 'required'})
    host.sync()
    return groups


@pytest.mark.parametrize(('models', 'number'), [((1, 2, 3), 6), ((2, 2), 6)])
def test_concurrent_builds_waste_no_alternative(
    database: Database, host: Host, models: tuple[int, ...], number: int
) -> None:
    groups = build_cards(database, host, models)
    profile = create_profile(database, tuple(groups))
    builds = Builds(database, host, profile)
    assert builds.run(number, seed=number) == min(number, sum(models))


def test_promise_ends_with_creation_of_arqs(database: Database, host: Host) -> None:
    groups = build_cards(database, host, (1, 1))
    profile = create_profile(database, tuple(groups))
    builds = Builds(database, host, profile)
    first, second, third = (builds.read_profile().groups[0] for _ in range(3))
    # All is promised: the third reader gets what is free although it is promised.
    assert (first, second, third) == (groups[0], groups[1], groups[0])
    for _ in range(3):
        database.write(arqs.create_arqs, profile.name, 'project')
    assert not database.read(alternatives.count_promises, profile.uuid)
    assert builds.read_profile().groups[0] == groups[0]


def test_promise_expires(database: Database, cards: Cards) -> None:
    profile = create_profile(database, (cards.large_group, cards.small_group))
    assert database.write(alternatives.promise_choice, profile.uuid, (0,), 1)
    assert not database.write(alternatives.promise_choice, profile.uuid, (0,), 1)
    age = update(ProfilePromise).values(promised_at=ProfilePromise.promised_at - 30_000)
    database.write(lambda session: session.execute(age))
    assert database.write(alternatives.promise_choice, profile.uuid, (0,), 1)
    assert database.read(alternatives.count_promises, profile.uuid) == {(0,): 1}
