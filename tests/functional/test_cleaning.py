# SPDX-License-Identifier: Apache-2.0
"""A drive is erased between two tenants: real daemons, real Placement, real processes.

The privileged process of the agent runs a script in place of nvme-cli.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from devstack.launcher.rest import Answer
from tests.chaos.faulty_cloud import FaultyCloud
from tests.hosts import rooted_privileges
from tests.hosts.fixture_agent import FixtureAgent
from tests.hosts.privileged_process import install_privileges
from tests.servers.stack import ADMIN, Instance, expect
from tests.servers.vgpu_fixtures import cloud

__all__ = ['cloud']

_DRIVE: Final = '0000:c2:00.0'
_OPERATOR: Final = {**ADMIN, 'OpenStack-API-Version': 'accelerator 2.6'}
_SECRET: Final = 'secret of the first tenant'
_SCRIPT: Final = """#!/bin/sh
drive={drive}
echo "$*" >> $drive/commands
case $1 in
version) echo 'nvme version 2.8 (git 2.8)';;
id-ctrl) echo '{{"sanicap" : 1, "oacs" : 2, "fna" : 0}}';;
sanitize)
    if test -e $drive/broken; then echo 'NVMe status: Internal Error'; exit 6; fi
    : > $drive/content;;
sanitize-log) echo 'Sanitize Status (SSTAT) : 0x101';;
esac
"""


class DriveHost(FixtureAgent):
    """Host with one free drive, whose content is a file."""

    def __init__(self, cloud: FaultyCloud, directory: Path) -> None:
        super().__init__(cloud, directory, 'nvme-lvm')
        self.drive = directory / 'drive'
        self.drive.mkdir()
        self.content = self.drive / 'content'
        self.broken = self.drive / 'broken'
        tools = directory / 'host'
        command = rooted_privileges.build_command(str(tools))
        self.settings = {
            'agent': {'privileged_command': command},
            'nvme_driver': {'cleaning': 'after-use'},
        }
        script = tools / 'usr/sbin/nvme'
        script.parent.mkdir(parents=True)
        script.write_text(_SCRIPT.format(drive=self.drive))
        script.chmod(0o755)
        install_privileges(tools)

    def decide(self, method: str, action: str = '') -> Answer:
        """Send a request about the cleans of the drive."""
        path = f'/v2/devices/{self.devices()[_DRIVE]}/cleanings{action}'
        return self.cloud.api(_OPERATOR).ask(method, path)

    # Any: JSON.
    def cleanings(self) -> dict[str, Any]:
        """Return the units and the cleans of the drive."""
        shown: dict[str, Any] = expect(self.decide('GET'), 200)
        return shown

    def wait_for(self, state: str) -> dict[str, Any]:
        """Wait until the unit has a state; return what is shown."""
        self.cloud.until(
            lambda: self.cleanings()['units'][0]['state'] == state,
            f'the unit is {state}',
        )
        self.settle()
        return self.cleanings()


@pytest.fixture
def host(cloud: FaultyCloud, tmp_path: Path) -> Iterator[DriveHost]:
    with DriveHost(cloud, tmp_path) as drive_host:
        yield drive_host


def boot(host: DriveHost) -> Instance:
    guest = host.cloud.boot('CUSTOM_SSD')
    host.cloud.until(guest.is_resolved, 'Nova receives the event')
    assert guest.states() == {'Bound'}
    return guest


def test_failed_clean_is_retried_before_next_bind(host: DriveHost) -> None:
    host.switch_on()
    before = host.providers()
    first = boot(host)
    host.content.write_text(_SECRET)
    host.broken.touch()
    first.delete()
    host.cloud.until(first.gone)

    failed = host.wait_for('clean_failed')
    assert 'Internal Error' in failed['units'][0]['reason']
    assert host.providers()[_DRIVE].free == 0
    assert host.content.read_text() == _SECRET
    expect(host.decide('POST', '/retry'), 202)
    assert len(host.wait_for('clean_failed')['cleanings']) == 2

    host.broken.unlink()
    expect(host.decide('POST', '/retry'), 202)
    shown = host.wait_for('clean')
    latest = shown['cleanings'][0]
    assert [record['state'] for record in shown['cleanings']] == [
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
    host.cloud.until(second.gone)
    assert host.wait_for('clean')['cleanings'][0]['actor'] == 'cyborg-lite'
