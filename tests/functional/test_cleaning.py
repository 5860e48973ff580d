# SPDX-License-Identifier: Apache-2.0
"""Units are cleaned between two tenants: real daemons, real Placement, real processes.

For drives the privileged process of the agent runs a script in place of nvme-cli.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.chaos.faulty_cloud import FaultyCloud
from tests.hosts.drive_host import DRIVE, DriveHost
from tests.servers.stack import Instance, expect
from tests.servers.vgpu_fixtures import cloud

__all__ = ['cloud']

_SECRET: Final = 'secret of the first tenant'


@pytest.fixture
def host(cloud: FaultyCloud, tmp_path: Path) -> Iterator[DriveHost]:
    with DriveHost(cloud, tmp_path) as drive_host:
        yield drive_host


def boot(host: DriveHost) -> Instance:
    guest = host.cloud.boot_bound('CUSTOM_SSD')
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
    guest.end()


def test_always_cleans_before_first_use(host: DriveHost) -> None:
    host.settings['nvme_driver'] = {'cleaning': 'always'}
    host.content.write_text(_SECRET)
    host.switch_on()
    assert host.wait_for('clean')['cleanings'][0]['state'] == 'succeeded'
    assert host.content.read_text() == ''
    guest = boot(host)
    guest.end()
    assert len(host.wait_for('clean')['cleanings']) == 2


def test_failed_clean_is_retried_before_next_bind(host: DriveHost) -> None:
    host.switch_on()
    before = host.providers()
    first = boot(host)
    host.content.write_text(_SECRET)
    host.broken.touch()
    first.end()

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
    assert latest['steps'][0]['proof'] == 'nvme version 2.8 (git 2.8)'
    assert latest['finished_at'] >= latest['started_at']
    assert host.providers() == before
    second = boot(host)
    assert host.content.read_text() == ''
    second.end()
    assert host.wait_for('clean')['cleanings'][0]['actor'] == 'cyborg-lite'
