# SPDX-License-Identifier: Apache-2.0
"""The cloud that all tests of this suite share."""

from collections.abc import Iterator

import pytest

from tests.servers.glance import RealGlance, real_glance
from tests.servers.keystone import RealKeystone, keystone
from tests.servers.openstack import HOSTS, OpenStack

__all__ = ['keystone', 'real_glance']

pytest.importorskip('nova', reason='the nova package is not installed')


@pytest.fixture(scope='session')
def cloud(
    tmp_path_factory: pytest.TempPathFactory,
    keystone: RealKeystone,
    real_glance: RealGlance,
) -> Iterator[OpenStack]:
    """Start the cloud with the first test that asks for it."""
    directory = tmp_path_factory.mktemp('openstack')
    with OpenStack(directory, keystone, real_glance) as cloud:
        yield cloud


@pytest.fixture(autouse=True)
def nothing_left_behind(cloud: OpenStack) -> Iterator[None]:
    """Check after each test that no ARQ and no allocation is left."""
    yield
    for host in HOSTS:
        cloud.refuse(host, False)
        cloud.delay(host, 0)
    cloud.proxy.lose_nothing()
    cloud.delete_servers()
