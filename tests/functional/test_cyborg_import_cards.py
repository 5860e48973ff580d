# SPDX-License-Identifier: Apache-2.0
"""Import of vGPUs, QAT and Xilinx cards with a real Placement.

Placement has the providers, inventories and allocations as OpenStack Cyborg left them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.clients.placement import Placement
from cyborg_lite.conductor.arqs.releasing import ReleaseHandler
from cyborg_lite.conductor.providers.sync import PlacementSync, SyncResult
from cyborg_lite.cyborg_import import source
from cyborg_lite.cyborg_import.importing import CyborgImport
from cyborg_lite.cyborg_import.plan import ImportPlan, NoteKind
from cyborg_lite.db.arqs import release
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.inventory import reports
from cyborg_lite.db.jobs import queue
from cyborg_lite.model.arqs.arqs import Scope
from cyborg_lite.model.operations import OperationKind
from cyborg_lite.model.traits import EMPTIED, OWNER_CYBORG
from tests.builders import cyborg_cards, cyborg_sample
from tests.builders.rows import OWNER
from tests.doubles.agents import FakeAgents
from tests.doubles.instances import FakeInstances
from tests.hosts.fixture_hosts import FixtureHost
from tests.servers.databases import database_fixture
from tests.servers.placement import CountedRemote, remote

__all__ = ['remote']

database = database_fixture('sqlite')

HOST = cyborg_cards.HOST
EVERYBODY = Scope(project_id=None)
EXPECTED_USAGES = {
    '0000:af:00.0': {'VGPU': 2},
    '0000:6b:00.1': {'CUSTOM_QAT': 1},
    '0000:6b:00.2': {'CUSTOM_QAT': 1},
    '0000:d8:00.0': {'FPGA': 1},
}


@dataclass
class MovedCloud:
    """Placement and Nova of a Cyborg, and the database of this service."""

    remote: CountedRemote
    database: Database
    directory: Path

    def __post_init__(self) -> None:
        self.placement = Placement(self.remote)
        self.servers = FakeInstances()
        self._create_sample()
        (self.root,) = (
            provider['uuid']
            for provider in cyborg_sample.read_cloud()['resource_providers']
            if provider['name'] == HOST
        )
        for card, part in cyborg_cards.list_parts():
            self._create_part(card, part)

    def _create_sample(self) -> None:
        cloud = cyborg_sample.read_cloud()
        self.servers.hosts = {row['id']: row['host'] for row in cloud['servers']}
        self.placement.create_custom_names(('CUSTOM_QAT',), ('CUSTOM_FAKE_DEVICE',))
        providers = cloud['resource_providers']
        for row in sorted(providers, key=lambda item: item['parent'] or ''):
            self.placement.create_provider(row['uuid'], row['name'], row['parent'])
            self._send(f'{row["uuid"]}/traits', 0, traits=row['traits'])
            self._send(f'{row["uuid"]}/inventories', 1, inventories=row['inventories'])
        for server, amounts in cloud['allocations'].items():
            self._allocate(server, amounts)

    def _create_part(
        self, card: cyborg_cards.CyborgCard, part: cyborg_cards.CyborgPart
    ) -> None:
        traits = [OWNER_CYBORG, card.trait] if card.trait else [OWNER_CYBORG]
        self.placement.create_custom_names((), traits[1:])
        name = f'{HOST}_{part.address}'
        self.placement.create_provider(part.provider, name, self.root)
        inventory = {'total': part.amount, 'max_unit': part.amount}
        self._send(f'{part.provider}/traits', 0, traits=traits)
        inventories = {card.resource_class: inventory}
        self._send(f'{part.provider}/inventories', 1, inventories=inventories)
        self.servers.hosts[part.server] = HOST
        amount = min(part.bound, part.amount)
        self._allocate(part.server, {part.provider: {card.resource_class: amount}})

    def remove(self) -> None:
        """Delete the objects in Placement, whose uuids are the same in all tests."""
        for server in self.servers.hosts:
            self.remote.send('DELETE', f'/allocations/{server}', accept=(404,))
        for row in cyborg_sample.read_cloud()['resource_providers']:
            if row['parent'] is None:
                for node in reversed(self.placement.list_tree(row['uuid'])):
                    if node.uuid != row['uuid']:
                        self.placement.delete_provider(node.uuid)
                self.placement.delete_provider(row['uuid'])

    # Any: JSON of the request.
    def _send(self, path: str, generation: int, **body: Any) -> None:
        body['resource_provider_generation'] = generation
        self.remote.send('PUT', f'/resource_providers/{path}', body)

    def _allocate(self, server: str, amounts: dict[str, Any]) -> None:
        body = {
            'allocations': {
                uuid: {'resources': resources} for uuid, resources in amounts.items()
            },
            'project_id': cyborg_cards.PROJECT,
            'user_id': cyborg_cards.PROJECT,
            'consumer_generation': None,
        }
        self.remote.send('PUT', f'/allocations/{server}', body)

    def write_import(self) -> ImportPlan:
        url = f'sqlite:///{self.directory}/cyborg.sqlite'
        cyborg_sample.load(url)
        cyborg_cards.add(url)
        clients: Any = self.placement, self.servers
        service = CyborgImport(self.database, *clients)
        plan = service.plan(source.read_source(url))
        service.write(plan)
        return plan

    def read_usages(self) -> dict[str, dict[str, int]]:
        """Return what instances have allocated, by address of the device."""
        return {
            part.address: dict(self.placement.get_usages(part.provider))
            for _card, part in cyborg_cards.list_parts()
        }

    def read_inventory(self, provider: str) -> tuple[str, int, int]:
        """Return resource class, total and reserved amount."""
        inventories = self.placement.get_inventories(provider).inventories
        ((name, inventory),) = inventories.items()
        return name, inventory.total, inventory.reserved

    def delete_server(self, server: str) -> None:
        """Delete ARQs and allocations as Nova does."""
        self.database.write(release.delete_arqs_of_instance, server, EVERYBODY, None)
        self.remote.send('DELETE', f'/allocations/{server}')

    def release_handles(self) -> None:
        """Run the release jobs with an agent that releases at once."""
        handler = ReleaseHandler(self.database, FakeAgents())
        types = (OperationKind.RELEASE,)
        for job in self.database.write(queue.lease_jobs, OWNER, 10, types):
            handler.run(job)

    def report(self) -> SyncResult:
        """Store the report of the drivers of this service, and synchronize."""
        devices = []
        for card in cyborg_cards.CARDS:
            report = FixtureHost(card.fixture, HOST, self.directory).scan()
            devices += [
                device
                for device in report.devices
                if device.control_address == card.address
            ]
        report = replace(report, devices=tuple(devices))
        self.database.write(reports.store_report, report)
        return PlacementSync(self.database, self.placement).sync(HOST)


@pytest.fixture
def cloud(
    remote: CountedRemote, database: Database, tmp_path: Path
) -> Iterator[MovedCloud]:
    cloud = MovedCloud(remote, database, tmp_path)
    yield cloud
    cloud.remove()


def test_imported_cards_keep_providers_and_allocations(cloud: MovedCloud) -> None:
    plan = cloud.write_import()
    refused = {note.uuid for note in plan.notes if note.kind is NoteKind.REFUSED}
    bound = cyborg_cards.list_bound()
    assert not refused & bound.keys()
    before = cloud.read_usages()
    assert cloud.report().problems == ()
    assert cloud.read_usages() == before == EXPECTED_USAGES
    for _card, part in cyborg_cards.list_parts():
        consumer = cloud.placement.find_consumer(part.server)
        assert consumer is not None
        assert consumer.providers == {part.provider}
    # The card has all functions but that of the other provider of Cyborg.
    qat, function = (part.provider for part in cyborg_cards.QAT.parts)
    assert cloud.read_inventory(qat) == ('CUSTOM_QAT', 16, 1)
    assert cloud.read_inventory(function) == ('CUSTOM_QAT', 1, 1)
    (xilinx,) = (part.provider for part in cyborg_cards.XILINX.parts)
    assert 'CUSTOM_FPGA_XILINX' in cloud.placement.get_traits(xilinx).traits


def test_deleted_servers_free_imported_cards(cloud: MovedCloud) -> None:
    cloud.write_import()
    cloud.report()
    for part in (*cyborg_cards.QAT.parts, *cyborg_cards.XILINX.parts):
        cloud.delete_server(part.server)
    assert cloud.report().problems == ()
    qat, function = (part.provider for part in cyborg_cards.QAT.parts)
    (xilinx,) = (part.provider for part in cyborg_cards.XILINX.parts)
    assert cloud.read_inventory(qat) == ('CUSTOM_QAT', 16, 0)
    # The host must release the FPGA before another server gets it.
    assert cloud.read_inventory(xilinx) == ('FPGA', 1, 1)
    cloud.release_handles()
    assert cloud.report().problems == ()
    # The region contains the logic of its user until the cleaning run.
    assert cloud.read_inventory(xilinx) == ('FPGA', 1, 1)
    # The provider of the single function is not used any more.
    traits = cloud.placement.get_traits(function).traits
    assert EMPTIED in traits
    assert not cloud.placement.get_inventories(function).inventories
    # The server with vGPUs is not deleted.
    (vgpu,) = (part.provider for part in cyborg_cards.VGPU.parts)
    assert cloud.placement.get_usages(vgpu) == {'VGPU': 2}
