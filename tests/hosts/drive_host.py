# SPDX-License-Identifier: Apache-2.0
"""Fixture host with one free drive, whose privileged process runs a fake nvme-cli."""

from pathlib import Path
from typing import Any, Final

from devstack.launcher.rest import Answer
from tests.chaos.faulty_cloud import FaultyCloud
from tests.hosts import rooted_privileges
from tests.hosts.fixture_agent import FixtureAgent
from tests.hosts.privileged_process import install_privileges
from tests.servers.stack import ADMIN, expect

DRIVE: Final = '0000:c2:00.0'
OPERATOR: Final = {**ADMIN, 'OpenStack-API-Version': 'accelerator 2.7'}
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
        # What root sees: controllers without a namespace that the host could use.
        for number in range(8):
            (tools / f'sys/class/nvme/nvme{number}').mkdir(parents=True)
        namespace = tools / 'proc/1/ns'
        namespace.mkdir(parents=True)
        (namespace / 'mnt').symlink_to('mnt:[1]')
        (namespace.parent / 'mountinfo').touch()
        install_privileges(tools)

    def decide(self, method: str, action: str = '') -> Answer:
        """Send a request about the cleans of the drive."""
        path = f'/v2/devices/{self.devices()[DRIVE]}/cleanings{action}'
        return self.cloud.api(OPERATOR).ask(method, path)

    # Any: JSON.
    def cleanings(self) -> dict[str, Any]:
        """Return the units and the cleans of the drive."""
        listing: dict[str, Any] = expect(self.decide('GET'), 200)
        return listing

    def wait_for(self, state: str) -> dict[str, Any]:
        """Wait until the unit has a state; return what is shown."""
        self.cloud.until(
            lambda: self.cleanings()['units'][0]['state'] == state,
            f'the unit is {state}',
        )
        self.settle()
        return self.cleanings()
