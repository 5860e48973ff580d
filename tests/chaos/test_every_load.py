# SPDX-License-Identifier: Apache-2.0
"""A conductor is killed at each step of a load: what is loaded is right all the same.

Real daemons and a real Glance; of the databases one for each way.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cyborg_lite.model.bitstreams import TAG
from tests.chaos.dying_conductor import OF_LOADING, OF_UNDOING, both_sides
from tests.chaos.kit import HurtCloud, accepted, running
from tests.chaos.region_driver import RegionDriver
from tests.fakes import out_of_tree, real_glance
from tests.fakes.bitstream_files import OTHER_FUNCTION, gbs, image
from tests.fakes.databases import fresh_database
from tests.fakes.fpga import FACTORY
from tests.fakes.loadable_driver import RESOURCE_CLASS
from tests.fakes.real_glance import RealGlance
from tests.fakes.stack import Instance


@dataclass
class Site:
    """A cloud with one card; Glance has the factory's function and another one."""

    cloud: HurtCloud
    file: Path
    wanted: str  # uuid of the image that is not the factory's

    @property
    def function(self) -> str:
        """What is in the card."""
        return self.file.read_text()

    def troubles(self) -> list[str]:
        """Why the card cannot be used."""
        query = 'SELECT unusable FROM loaded_regions'
        return [reason for (reason,) in self.cloud.rows(query)]

    def offered(self) -> Instance:
        """A server that is to be bound."""
        profile = self.cloud.create_profile(RESOURCE_CLASS, bitstream_id=self.wanted)
        provider = self.cloud.provider_of(RESOURCE_CLASS)
        instance = Instance(self.cloud, provider, {RESOURCE_CLASS: 1})
        instance.create_arqs(profile)
        inventory = self.cloud.inventory
        self.cloud.until(
            lambda: not inventory(provider)[RESOURCE_CLASS]['reserved'],
            'what was cleaned last can be allocated',
        )
        instance.allocate()
        return instance


@pytest.fixture(scope='module')
def site(
    request: pytest.FixtureRequest,
    broker: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp('loads')
    glance = real_glance.running(request.config)
    images = [uploaded(glance, function) for function in (FACTORY, OTHER_FUNCTION)]
    file = directory / 'function'
    file.write_text(FACTORY)
    databases = fresh_database(request.param)
    cloud = HurtCloud(directory, broker, next(databases))
    cloud.configure(
        {
            'agent': {'enabled_drivers': 'region_driver'},
            'region_driver': {'file': file},
            'glance': {'endpoint_override': glance.endpoint},
        }
    )
    cloud.python_path.append(out_of_tree.install(RegionDriver, directory / 'regions'))
    with running(cloud):
        yield Site(cloud, file, images[1])
    next(databases, None)


def uploaded(glance: RealGlance, function: str) -> str:
    said = {**image().properties, 'function_uuid': function}
    return glance.upload(gbs(function=function), (TAG,), said)


@pytest.mark.parametrize('site', ['mariadb'], indirect=True)
@pytest.mark.parametrize('step', both_sides(*OF_LOADING))
def test_a_bind_that_loads_survives(site: Site, step: str) -> None:
    cloud = site.cloud
    before = cloud.start('conductor', name='before')
    instance = site.offered()
    before.end()
    dying = cloud.start_dying('dying', step)
    accepted(instance.bind(), 202)
    cloud.until(lambda: dying.status is not None, 'it dies')
    after = cloud.start('conductor', name='after')
    cloud.until(instance.resolved, 'Nova hears of the request')
    assert instance.states() == {'Bound'}
    assert site.function == OTHER_FUNCTION
    assert cloud.owners() == instance.arqs
    instance.delete()
    cloud.settle()
    assert cloud.owners() == []
    assert site.function == FACTORY, site.troubles()
    after.end()


@pytest.mark.parametrize('site', ['postgresql'], indirect=True)
@pytest.mark.parametrize('step', both_sides(*OF_UNDOING))
def test_a_release_that_loads_survives(site: Site, step: str) -> None:
    cloud = site.cloud
    before = cloud.start('conductor', name='before')
    instance = site.offered()
    assert instance.bind().status == 202
    cloud.until(instance.resolved, 'Nova hears of the request')
    cloud.settle()
    before.end()
    dying = cloud.start_dying('dying', step)
    accepted(instance.give_back(), 204)
    instance.deallocate()
    cloud.until(lambda: dying.status is not None, 'it dies')
    after = cloud.start('conductor', name='after')
    cloud.settle()
    assert cloud.owners() == []
    assert not cloud.states()
    assert site.function == FACTORY
    after.end()
