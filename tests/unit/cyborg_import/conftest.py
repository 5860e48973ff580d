# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the import: those of the commands, and the cloud of the sample."""

import pytest

from cyborg_lite.clients.nova import Nova
from cyborg_lite.clients.placement import Consumer, Placement
from tests.builders import cyborg_sample
from tests.doubles.instances import FakeInstances
from tests.doubles.placement import FakePlacement
from tests.unit.cmd.conftest import database, write_config

__all__ = ['database', 'write_config']


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> FakeInstances:
    servers = FakeInstances()
    cloud = cyborg_sample.read_cloud()
    servers.hosts = {server['id']: server['host'] for server in cloud['servers']}
    monkeypatch.setattr(Nova, 'from_config', lambda conf: servers)
    return servers


@pytest.fixture
def placement(monkeypatch: pytest.MonkeyPatch) -> FakePlacement:
    placement = FakePlacement()
    cloud = cyborg_sample.read_cloud()
    for provider in cloud['resource_providers']:
        placement.create_provider(
            provider['uuid'], provider['name'], provider['parent']
        )
    for uuid, allocations in cloud['allocations'].items():
        placement.consumers[uuid] = Consumer(uuid, 'project', 'user', 1, allocations)
    monkeypatch.setattr(Placement, 'from_config', lambda conf: placement)
    return placement
