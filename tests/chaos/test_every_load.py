# SPDX-License-Identifier: Apache-2.0
"""A conductor is killed at each step of a load; the loaded bitstream is still correct.

Real daemons and a real Glance; each path uses one of the databases.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cyborg_lite.model.bitstreams.bitstreams import TAG
from tests.builders import driver_packages
from tests.builders.bitstream_files import OTHER_FUNCTION, gbs, image
from tests.builders.fpga_reports import FACTORY
from tests.chaos.crashing_conductor import OF_LOADING, OF_UNDOING, both_sides
from tests.chaos.faulty_cloud import FaultyCloud, check_accepted, run_cloud
from tests.chaos.region_driver import RegionDriver
from tests.doubles.loadable_driver import RESOURCE_CLASS
from tests.servers import glance as real_glance
from tests.servers.databases import fresh_database
from tests.servers.glance import RealGlance
from tests.servers.stack import Instance


@dataclass
class Site:
    """Cloud with one card. Glance has the factory function and another one."""

    cloud: FaultyCloud
    file: Path
    image_uuid: str  # uuid of the image with the other function

    @property
    def function(self) -> str:
        """Return the function id in the card."""
        return self.file.read_text()

    def list_faults(self) -> list[str]:
        """Return the reasons that make the card unusable."""
        query = 'SELECT unusable_reason FROM loaded_regions'
        return [reason for (reason,) in self.cloud.rows(query)]

    def create_instance(self) -> Instance:
        """Create an instance that is ready to bind."""
        profile = self.cloud.create_profile(
            RESOURCE_CLASS, bitstream_id=self.image_uuid
        )
        return self.cloud.request(RESOURCE_CLASS, profile=profile)


@pytest.fixture(scope='module')
def site(
    request: pytest.FixtureRequest,
    broker: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp('loads')
    glance = real_glance.start_glance(request.config)
    images = [upload_image(glance, function) for function in (FACTORY, OTHER_FUNCTION)]
    file = directory / 'function'
    file.write_text(FACTORY)
    databases = fresh_database(request.param)
    cloud = FaultyCloud(directory, broker, next(databases))
    cloud.configure(
        {
            'agent': {'enabled_drivers': 'region_driver'},
            'region_driver': {'file': file},
            'glance': {'endpoint_override': glance.endpoint},
        }
    )
    cloud.python_path.append(
        driver_packages.install(RegionDriver, directory / 'regions')
    )
    with run_cloud(cloud):
        yield Site(cloud, file, images[1])
    next(databases, None)


def upload_image(glance: RealGlance, function: str) -> str:
    properties = {**image().properties, 'function_uuid': function}
    return glance.upload(gbs(function=function), (TAG,), properties)


@pytest.mark.parametrize('site', ['mariadb'], indirect=True)
@pytest.mark.parametrize('step', both_sides(*OF_LOADING))
def test_bind_with_load_survives_kill(site: Site, step: str) -> None:
    cloud = site.cloud
    conductor = cloud.start_survivor()
    instance = site.create_instance()
    conductor.end()
    dying = cloud.start_dying('dying', step)
    check_accepted(instance.bind(), 202)
    cloud.until(lambda: dying.status is not None, 'the process exits')
    cloud.start_survivor()
    instance.wait_until_bound()
    assert site.function == OTHER_FUNCTION
    assert cloud.owners() == instance.arqs
    instance.delete()
    cloud.settle()
    assert cloud.owners() == []
    assert site.function == FACTORY, site.list_faults()


@pytest.mark.parametrize('site', ['postgresql'], indirect=True)
@pytest.mark.parametrize('step', both_sides(*OF_UNDOING))
def test_release_with_load_survives_kill(site: Site, step: str) -> None:
    cloud = site.cloud
    conductor = cloud.start_survivor()
    instance = site.create_instance()
    assert instance.bind().status == 202
    cloud.until(instance.is_resolved, 'Nova receives the event')
    cloud.settle()
    conductor.end()
    dying = cloud.start_dying('dying', step)
    check_accepted(instance.give_back(), 204)
    instance.deallocate()
    cloud.until(lambda: dying.status is not None, 'the process exits')
    cloud.start_survivor()
    cloud.settle()
    assert cloud.owners() == []
    assert not cloud.states()
    assert site.function == FACTORY
