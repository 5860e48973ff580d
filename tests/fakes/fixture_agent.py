# SPDX-License-Identifier: Apache-2.0
"""A host of the fixtures with a real agent, whose cards are changed while it is off."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from devstack.launcher.processes import Child
from tests.chaos.kit import HurtCloud
from tests.fakes.fixture_hosts import DRIVERS, Edit, FixtureHost
from tests.fakes.stack import ADMIN, ROOT, expect


@dataclass(frozen=True, slots=True)
class Shown:
    """A provider as Placement shows it."""

    uuid: str
    inventory: Mapping[str, int]  # totals, by class
    free: int
    traits: frozenset[str]


class FixtureAgent:
    """It is the cloud's current host for as long as it is open."""

    def __init__(self, cloud: HurtCloud, directory: Path, fixture: str) -> None:
        self.cloud = cloud
        self.name = cloud.next_host()
        self.fixture = FixtureHost(fixture, self.name, directory)
        directory.mkdir(exist_ok=True)
        self.nova_file = directory / 'nova.conf'
        self.nova_file.touch()
        self.root: Path = directory  # of the tree; set anew by each start
        self._directory = directory
        self._starts = 0
        self._agent: Child | None = None  # None: it does not run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *trouble: object) -> None:
        if self._agent is not None:
            print(self._agent.tail(60), file=sys.stderr)
        self.switch_off()

    @property
    def options(self) -> dict[str, dict[str, object]]:
        return {
            'agent': {
                'enabled_drivers': ','.join(kind.NAME for kind in DRIVERS),
                'sysfs_root': self.root,
                'state_path': self._directory / 'agent',
                'nova_config_files': self.nova_file,
                'removal_scans': 1,
            },
            'nvidia_gpu_driver': {'vgpu_types': ','.join(self.fixture.rules)},
        }

    def switch_off(self) -> None:
        if self._agent is not None:
            self._agent.kill()
            self.cloud.children.remove(self._agent)
        self._agent = None

    def switch_on(self, *edits: Edit) -> None:
        """With other hardware than before; return when it was reported, if new."""
        self.switch_off()
        self.fixture.edit(*edits)
        self.root = self.fixture.build()
        self._starts += 1
        log = f'{self.name}-{self._starts}'
        agent = self._agent = self.cloud.begin(log, 'agent', [], self.options)
        agent.until(lambda: 'Reported' in self.cloud.log(agent))
        self.settle()

    def settle(self) -> None:
        """Wait until Placement has followed."""
        jobs = 'SELECT uuid FROM jobs'
        self.cloud.until(lambda: not self.cloud.rows(jobs), 'no job is left')

    # Any: JSON.
    def verdicts(self) -> list[dict[str, Any]]:
        """What ``cyborg-lite-agent discover`` says of the host."""
        config = self.cloud.write_config(f'{self.name}-discover', self.options)
        command = [sys.executable, '-m', 'cyborg_lite.cmd.agent', 'discover']
        ended = subprocess.run(
            [*command, '--format', 'json', '--config-file', str(config)],
            capture_output=True,
            check=True,
            cwd=ROOT,
        )
        found: list[dict[str, Any]] = json.loads(ended.stdout)
        return found

    def repair(self) -> str:
        """As an operator does who does not want to wait; what was printed."""
        self._starts += 1
        command = ['placement', 'audit', '--apply', '--host', self.name]
        log = f'{self.name}-audit-{self._starts}'
        child = self.cloud.begin(log, 'manage', command)
        child.until(lambda: child.status is not None)
        self.cloud.children.remove(child)
        return self.cloud.log(child)

    def health(self, address: str) -> tuple[str, str]:
        """Of a device, and the reason, as the API shows them."""
        newest = {**ADMIN, 'OpenStack-API-Version': 'accelerator latest'}
        path = f'/v2/devices/{self.devices()[address]}'
        device = expect(self.cloud.api(newest).ask('GET', path), 200)
        device = device.get('device', device)
        return device['health'], device['health_reason']

    def providers(self) -> dict[str, Shown]:
        """By the part of the name that follows the host's."""
        shown = {
            name.removeprefix(f'{self.name}_'): self._shown(one['uuid'])
            for name, one in self.cloud.providers().items()
        }
        return {name: one for name, one in shown.items() if one is not None}

    def _shown(self, uuid: str) -> Shown | None:
        """None: it went between the list and the look."""
        answers = [
            self.cloud.placement.ask('GET', f'/resource_providers/{uuid}/{part}')
            for part in ('inventories', 'traits')
        ]
        if any(answer.status == 404 for answer in answers):
            return None
        inventories, traits = (expect(answer, 200) for answer in answers)
        found = inventories['inventories']
        free = sum(one['total'] - one['reserved'] for one in found.values())
        totals = {name: one['total'] for name, one in found.items()}
        return Shown(uuid, totals, free, frozenset(traits['traits']))

    def devices(self) -> dict[str, str]:
        """Their uuids, by address."""
        query = f"SELECT address, uuid FROM devices WHERE hostname = '{self.name}'"
        return {str(address): str(uuid) for address, uuid in self.cloud.rows(query)}

    def handles(self, address: str) -> list[tuple[str, dict[str, str]]]:
        """Type and info of each of a device, in the order of their making."""
        rows = self.cloud.rows(
            'SELECT h.type, h.info FROM attach_handles h'
            ' JOIN deployables p ON p.id = h.deployable_id'
            ' JOIN devices d ON d.id = p.device_id'
            f" WHERE d.hostname = '{self.name}' AND d.address = '{address}'"
            ' ORDER BY h.id'
        )
        return [(kind, json.loads(info)) for kind, info in rows]


FIXTURES: Final = (
    't4-mdev',
    'a100-sriov-mig',
    'l40s-vendor-vfio',
    'generic-pci',
    'fpga-intel',
    'fpga-xilinx-u250',
    'qat-x710',
    'nvme-ascend',
)
