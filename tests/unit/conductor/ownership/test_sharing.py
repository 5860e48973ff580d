# SPDX-License-Identifier: Apache-2.0
"""Detection of another service that uses resource classes of this service."""

from uuid import uuid4

import pytest

from cyborg_lite.conductor.ownership.sharing import SharingCheck
from cyborg_lite.conductor.providers.sync import PlacementSync
from cyborg_lite.db.core.engine import Database
from cyborg_lite.model.providers.providers import ProviderInventory
from tests.builders.provider_rows import add_device, change_deployable
from tests.doubles.placement import FakePlacement

HOST = 'compute-1'


class SharedHost:
    """Host with a vGPU card of this service."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.placement = FakePlacement()
        self.root = self.placement.create_provider(str(uuid4()), HOST, None)
        self.card = add_device(
            database, HOST, '0000:af:00.0', resource_class='VGPU', num_accelerators=8
        )
        self.sync()

    def sync(self) -> None:
        PlacementSync(self.database, self.placement).sync(HOST)

    def check(self) -> list[tuple[str, str, str]]:
        check = SharingCheck(self.database, self.placement)
        return [
            (finding.problem, finding.rp_uuid, finding.reason)
            for finding in check.check_host(HOST)
        ]

    def add_nova_card(self, resource_class: str) -> str:
        """Add a provider as the libvirt driver of Nova does."""
        name = f'{HOST}_pci_0000_3b_00_0'
        node = self.placement.create_provider(str(uuid4()), name, self.root.uuid)
        stock = {resource_class: ProviderInventory(4)}
        self.placement.providers[node.uuid].inventories = stock
        return node.uuid


@pytest.fixture
def cloud(database: Database) -> SharedHost:
    return SharedHost(database)


def test_foreign_provider_of_same_class_is_found(cloud: SharedHost) -> None:
    assert cloud.check() == []
    uuid = cloud.add_nova_card('VGPU')
    ((problem, provider, reason),) = cloud.check()
    assert (problem, provider) == ('shared-class', uuid)
    assert 'vgpu_resource_class' in reason
    assert 'mdev_class' in reason


def test_own_resource_class_ends_the_conflict(cloud: SharedHost) -> None:
    cloud.add_nova_card('VGPU')
    change_deployable(cloud.database, cloud.card, resource_class='CUSTOM_CYBORG_VGPU')
    cloud.sync()
    assert cloud.check() == []


def test_provider_of_other_class_is_no_conflict(cloud: SharedHost) -> None:
    cloud.add_nova_card('CUSTOM_NOVA_VGPU')
    assert cloud.check() == []


def test_host_without_device_costs_no_request(database: Database) -> None:
    placement = FakePlacement()
    check = SharingCheck(database, placement)
    assert [*check.check_host(HOST)] == []
    assert placement.calls == []
