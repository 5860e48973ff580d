# SPDX-License-Identifier: Apache-2.0
"""Move of a real cloud from OpenStack Cyborg: import, start, reboot, delete, bind."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.builders import cyborg_sample
from tests.servers import rabbitmq
from tests.servers.databases import fresh_database
from tests.servers.stack import NOVA, Cloud, expect


class MovedCloud(Cloud):
    """Cloud whose Placement and Nova are as Cyborg left them."""

    def __init__(self, directory: Path, transport_url: str, connection: str) -> None:
        host = {'DEFAULT': {'host': cyborg_sample.HOST}}
        super().__init__(
            directory,
            transport_url=transport_url,
            connection=connection,
            options=host,
        )
        self.host = cyborg_sample.HOST

    def _create_node(self) -> None:
        cloud = cyborg_sample.read_cloud()
        expect(self.placement.ask('PUT', '/traits/CUSTOM_FAKE_DEVICE'), 201)
        providers = cloud['resource_providers']
        for provider in sorted(providers, key=lambda item: item['parent'] or ''):
            self._create_provider(provider)
        for server in cloud['servers']:
            self.nova.rules.servers[server['id']] = server['host']
            body = {
                'allocations': {
                    uuid: {'resources': amounts}
                    for uuid, amounts in cloud['allocations'][server['id']].items()
                },
                'project_id': server['project'],
                'user_id': server['project'],
                'consumer_generation': None,
                'consumer_type': 'INSTANCE',
            }
            path = f'/allocations/{server["id"]}'
            expect(self.placement.ask('PUT', path, body), 204)

    def _create_provider(self, provider: dict[str, Any]) -> None:
        body = {'name': provider['name'], 'uuid': provider['uuid']}
        if provider['parent']:
            body['parent_provider_uuid'] = provider['parent']
        expect(self.placement.ask('POST', '/resource_providers', body), 200)
        path = f'/resource_providers/{provider["uuid"]}'
        traits = {'traits': provider['traits'], 'resource_provider_generation': 0}
        expect(self.placement.ask('PUT', f'{path}/traits', traits), 200)
        inventories = {
            'inventories': provider['inventories'],
            'resource_provider_generation': 1,
        }
        expect(self.placement.ask('PUT', f'{path}/inventories', inventories), 200)

    def import_from(self, url: str) -> str:
        """Run the import and return its output."""
        record = self.directory / 'record.json'
        return self.run('manage', 'import', '--from', url, '--record', str(record))[1]

    def list_arqs(self) -> dict[str, dict[str, Any]]:
        """Return all ARQs as an admin sees them, by uuid."""
        answer = self.api().ask('GET', '/v2/accelerator_requests')
        return {arq['uuid']: arq for arq in expect(answer, 200)['arqs']}

    def is_reported(self) -> bool:
        """Check whether the agent has reported the imported device."""
        devices = expect(self.api().ask('GET', '/v2/devices'), 200)['devices']
        return any(device['model'] == 'FakeDevice' for device in devices)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[MovedCloud]:
    target, source = fresh_database('mariadb'), fresh_database('mariadb')
    with ExitStack() as cleanup:
        bus = cleanup.enter_context(rabbitmq.virtual_host())
        url = next(source)
        cleanup.callback(next, source, None)
        connection = next(target)
        cleanup.callback(next, target, None)
        cyborg_sample.load(url)
        cloud = cleanup.enter_context(MovedCloud(tmp_path, bus, connection))
        cloud.migrate()
        assert '--undo' in cloud.import_from(url)
        cloud.start('conductor')
        cloud.start('api')
        yield cloud


def test_imported_cloud_reboots_deletes_and_binds(cloud: MovedCloud) -> None:
    before = cloud.list_arqs()
    source = cyborg_sample.read_cloud()
    assert before.keys() == {arq['uuid'] for arq in source['accelerator_requests']}
    for arq in source['accelerator_requests']:
        fields = ('state', 'attach_handle_uuid', 'instance_uuid', 'device_rp_uuid')
        assert [before[arq['uuid']][key] for key in fields] == [
            arq[key] for key in fields
        ]
    profiles = expect(cloud.api().ask('GET', '/v2/device_profiles'), 200)
    stored = {row['uuid']: row['groups'] for row in profiles['device_profiles']}
    assert stored == {row['uuid']: row['groups'] for row in source['device_profiles']}

    cloud.start('agent')
    cloud.until(cloud.is_reported, 'the device is reported')
    providers = {name: row['uuid'] for name, row in cloud.providers().items()}
    assert providers == {'vm_FakeDevice': cyborg_sample.PROVIDER}
    nova = cloud.api(NOVA)
    for server in source['servers']:
        # Nova reads the ARQs when it reboots a server.
        path = f'/v2/accelerator_requests?instance={server["id"]}'
        arqs = expect(nova.ask('GET', path), 200)['arqs']
        assert {arq['state'] for arq in arqs} == {'Bound'}
        assert all(arq['attach_handle_info']['bus'] == '0c' for arq in arqs)
    after = cloud.list_arqs()
    handles = {uuid: arq['attach_handle_uuid'] for uuid, arq in after.items()}
    assert handles == {uuid: arq['attach_handle_uuid'] for uuid, arq in before.items()}

    for server in source['servers']:
        path = f'/v2/accelerator_requests?instance={server["id"]}'
        expect(nova.ask('DELETE', path), 204)
        expect(cloud.placement.ask('DELETE', f'/allocations/{server["id"]}'), 204)
    assert len(cloud.list_arqs()) == len(before) - cyborg_sample.BOUND
    # All units are free again, under the same provider.
    instance = cloud.boot('FPGA', 16)
    assert instance.provider == cyborg_sample.PROVIDER
    instance.wait_until_bound()
