# SPDX-License-Identifier: Apache-2.0
"""Units are cleaned between two tenants: real daemons, real Placement, real processes.

For drives the privileged process of the agent runs a script in place of nvme-cli.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.chaos.faulty_cloud import FaultyCloud
from tests.hosts.drive_host import DRIVE, OPERATOR, DriveHost
from tests.servers.stack import Instance, expect
from tests.servers.vgpu_fixtures import cloud
from tests.servers.vgpu_machine import Generation, VgpuHost

__all__ = ['cloud']

_SECRET: Final = 'secret of the first tenant'


@pytest.fixture
def host(cloud: FaultyCloud, tmp_path: Path) -> Iterator[DriveHost]:
    with DriveHost(cloud, tmp_path) as drive_host:
        yield drive_host


def boot(host: DriveHost) -> Instance:
    guest = host.cloud.boot('CUSTOM_SSD')
    host.cloud.until(guest.is_resolved, 'Nova receives the event')
    assert guest.states() == {'Bound'}
    return guest


def check_no_bind(host: DriveHost) -> None:
    """Check that neither Placement nor a bind gives the drive to an instance."""
    provider = host.providers()[DRIVE].uuid
    guest = Instance(host.cloud, provider, {'CUSTOM_SSD': 1})
    guest.create_arqs(host.cloud.create_profile('CUSTOM_SSD'))
    with pytest.raises(AssertionError, match='409'):
        guest.allocate()
    # A client of Placement that offers the drive does not make it clean.
    path = f'/resource_providers/{provider}/inventories'
    body = expect(host.cloud.placement.ask('GET', path), 200)
    body['inventories']['CUSTOM_SSD']['reserved'] = 0
    expect(host.cloud.placement.ask('PUT', path, body), 200)
    guest.allocate()
    expect(guest.bind(), 202)
    host.cloud.until(guest.is_resolved, 'Nova receives the event')
    assert [event['status'] for event in guest.events()] == ['failed']
    (arq,) = guest.list_arqs()
    assert (arq['state'], arq['attach_handle_uuid']) == ('BindFailed', None)
    guest.delete()
    host.cloud.until(guest.are_arqs_deleted)


def test_always_cleans_before_first_use(host: DriveHost) -> None:
    host.settings['nvme_driver'] = {'cleaning': 'always'}
    host.content.write_text(_SECRET)
    host.switch_on()
    assert host.wait_for('clean')['cleanings'][0]['state'] == 'succeeded'
    assert host.content.read_text() == ''
    guest = boot(host)
    guest.delete()
    host.cloud.until(guest.are_arqs_deleted)
    assert len(host.wait_for('clean')['cleanings']) == 2


@pytest.mark.parametrize('policy', ['one-time', 'never'])
def test_release_without_clean(host: DriveHost, policy: str) -> None:
    host.settings['nvme_driver'] = {'cleaning': policy}
    host.switch_on()
    first = boot(host)
    host.content.write_text(_SECRET)
    first.delete()
    host.cloud.until(first.are_arqs_deleted)
    host.settle()
    if policy == 'never':
        assert host.providers()[DRIVE].free == 1
        assert host.content.read_text() == _SECRET
        return
    assert host.providers()[DRIVE].free == 0
    check_no_bind(host)
    assert host.content.read_text() == _SECRET


def test_failed_clean_is_retried_before_next_bind(host: DriveHost) -> None:
    host.switch_on()
    before = host.providers()
    first = boot(host)
    host.content.write_text(_SECRET)
    host.broken.touch()
    first.delete()
    host.cloud.until(first.are_arqs_deleted)

    failed = host.wait_for('clean_failed')
    assert 'Internal Error' in failed['units'][0]['reason']
    assert host.providers()[DRIVE].free == 0
    assert host.content.read_text() == _SECRET
    check_no_bind(host)
    expect(host.decide('POST', '/retry'), 202)
    assert len(host.wait_for('clean_failed')['cleanings']) == 2

    host.broken.unlink()
    expect(host.decide('POST', '/retry'), 202)
    listing = host.wait_for('clean')
    latest = listing['cleanings'][0]
    assert [record['state'] for record in listing['cleanings']] == [
        'succeeded',
        'failed',
        'failed',
    ]
    assert [step['name'] for step in latest['steps']] == ['sanitize-crypto', 'verify']
    assert latest['steps'][0]['tool'] == 'nvme version 2.8 (git 2.8)'
    assert latest['finished_at'] >= latest['started_at']
    assert host.providers() == before
    second = boot(host)
    assert host.content.read_text() == ''
    second.delete()
    host.cloud.until(second.are_arqs_deleted)
    assert host.wait_for('clean')['cleanings'][0]['actor'] == 'cyborg-lite'


# --- any PCI function ---


class FunctionHost(VgpuHost):
    """Host whose operator allows a function that is reset after each use."""

    def __init__(self, cloud: FaultyCloud, directory: Path) -> None:
        generation = Generation('generic-pci', (), ('', ''), (1, 1))
        super().__init__(cloud, directory, generation)
        entry = {
            'vendor_id': '1d55',
            'resource_class': 'DSP',
            'cleaning': 'after-use',
        }
        cloud.configure({'pci_driver': {'device_spec': json.dumps(entry)}})
        self.settings = {'enabled_drivers': 'pci_driver'}

    # Any: JSON.
    def cleanings(self) -> dict[str, Any]:
        query = f"SELECT uuid FROM devices WHERE hostname = '{self.name}'"
        ((device,),) = self.cloud.rows(query)
        path = f'/v2/devices/{device}/cleanings'
        answer = self.cloud.api(OPERATOR).ask('GET', path)
        listing: dict[str, Any] = expect(answer, 200)
        return listing

    def list_states(self) -> set[str]:
        return {unit['state'] for unit in self.cleanings()['units']}


def test_function_is_reset_after_use(cloud: FaultyCloud, tmp_path: Path) -> None:
    with FunctionHost(cloud, tmp_path) as function_host:
        function_host.start_agent()
        guest = cloud.boot('CUSTOM_DSP')
        cloud.until(guest.is_resolved, 'Nova receives the event')
        assert guest.states() == {'Bound'}
        guest.delete()
        cloud.until(guest.are_arqs_deleted)
        cloud.until(lambda: function_host.cleanings()['cleanings'], 'a clean is stored')
        cloud.until(
            lambda: function_host.list_states() == {'clean'}, 'the unit is clean'
        )
        (record,) = function_host.cleanings()['cleanings']
        assert [step['name'] for step in record['steps']] == ['reset']
        (path,) = (path for path, text in function_host.kernel.written if text == '1')
        assert path.endswith('/reset')
