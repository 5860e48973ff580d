# SPDX-License-Identifier: Apache-2.0
"""Horizon and the cloud that it shows, shared by all tests of this suite."""

import os
from collections.abc import Iterator

import pytest

from tests.hosts import sysfs_tree
from tests.servers.horizon import HorizonServer
from tests.servers.keystone import RealKeystone, keystone
from tests.servers.keystone_cloud import KeystoneCloud

__all__ = ['keystone']

pytest.importorskip('horizon', reason='Horizon is not installed')


def pytest_configure() -> None:
    """Load the settings of Horizon's own tests, which forms and tables need."""
    import django

    os.environ['DJANGO_SETTINGS_MODULE'] = 'openstack_dashboard.test.settings'
    django.setup()


@pytest.fixture(scope='session')
def cloud(
    keystone: RealKeystone, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KeystoneCloud]:
    """Start a host with an NVIDIA T4 and the fake device."""
    directory = tmp_path_factory.mktemp('cloud')
    sysfs_tree.build('t4-mdev', directory / 'host')
    agent = {
        'enabled_drivers': 'fake_driver,nvidia_gpu_driver',
        'sysfs_root': directory / 'host',
    }
    with KeystoneCloud(directory, keystone, options={'agent': agent}) as cloud:
        cloud.start('standalone')
        cloud.provider_of('PGPU')
        cloud.provider_of('FPGA')
        yield cloud


@pytest.fixture(scope='session')
def horizon(
    cloud: KeystoneCloud, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HorizonServer]:
    """Start Horizon after the service is in the catalog."""
    directory = tmp_path_factory.mktemp('horizon')
    with HorizonServer(directory, cloud.keystone.url) as server:
        yield server
