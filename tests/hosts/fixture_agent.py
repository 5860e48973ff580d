# SPDX-License-Identifier: Apache-2.0
"""Fixture host with a real agent; its cards change while the agent is stopped."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from cyborg_lite.model.traits import DEGRADED, EMPTIED
from devstack.launcher.processes import Child
from tests.chaos.faulty_cloud import FaultyCloud
from tests.hosts.fixture_drivers import DRIVERS, read_options
from tests.hosts.fixture_hosts import Edit, FixtureHost
from tests.servers.stack import ADMIN, expect, find_json


@dataclass(frozen=True, slots=True)
class ShownProvider:
    """Resource provider as Placement shows it."""

    uuid: str
    inventory: Mapping[str, int]  # total by resource class
    free: int
    traits: frozenset[str]


class FixtureAgent:
    """Current host of the cloud while it is open."""

    def __init__(self, cloud: FaultyCloud, directory: Path, fixture: str) -> None:
        self.cloud = cloud
        self.name = cloud.next_host()
        self.fixture = FixtureHost(fixture, self.name, directory)
        directory.mkdir(exist_ok=True)
        self.nova_file = directory / 'nova.conf'
        self.nova_file.touch()
        self.state_path = directory / 'agent'
        self.root: Path = directory  # root of the tree; each start sets it
        # Further options by section. The emulated host has no tools and no privileges.
        self.settings: dict[str, dict[str, object]] = {
            'agent': {},
            'nvme_driver': {'cleaning': 'never'},
            'intel_fpga_driver': {'cleaning': 'never'},
            'xilinx_fpga_driver': {'cleaning': 'never'},
            'inspur_fpga_driver': {'cleaning': 'never'},
        }
        self._directory = directory
        self._starts = 0
        self._agent: Child | None = None  # None: the agent does not run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *trouble: object) -> None:
        if self._agent is not None:
            print(self._agent.tail(60), file=sys.stderr)
        self.switch_off()

    @property
    def options(self) -> dict[str, dict[str, object]]:
        return {
            **self.settings,
            'agent': {
                **self.settings['agent'],
                'enabled_drivers': ','.join(kind.NAME for kind in DRIVERS),
                'sysfs_root': self.root,
                'state_path': self.state_path,
                'nova_config_files': self.nova_file,
                'removal_scans': 1,
            },
            **{
                driver: {
                    **self.settings.get(driver, {}),
                    **{name: _format(name, values) for name, values in items.items()},
                }
                for driver, items in read_options(self.fixture.config).items()
            },
        }

    def switch_off(self) -> None:
        if self._agent is not None:
            self._agent.kill()
            self.cloud.children.remove(self._agent)
        self._agent = None

    def switch_on(self, *edits: Edit) -> None:
        """Start the agent on changed hardware; wait until a new report is stored."""
        self.switch_off()
        self.fixture.edit(*edits)
        self.root = self.fixture.build()
        self._starts += 1
        log = f'{self.name}-{self._starts}'
        agent = self._agent = self.cloud.begin(log, 'agent', [], self.options)
        agent.until(lambda: 'Reported' in self.cloud.log(agent))
        self.settle()

    def settle(self) -> None:
        """Wait until Placement has the new state."""
        jobs = 'SELECT uuid FROM jobs'
        self.cloud.until(lambda: not self.cloud.rows(jobs), 'no job is left')

    # Any: JSON.
    def verdicts(self) -> list[dict[str, Any]]:
        """Return the output of ``cyborg-lite-agent discover``."""
        arguments = ['discover', '--format', 'json']
        status, output = self.cloud.run('agent', *arguments, options=self.options)
        assert status == 0, output
        entries: list[dict[str, Any]] = find_json(output)
        return entries

    def repair(self) -> str:
        """Run the repair command of an operator and return its output."""
        command = ['placement', 'audit', '--apply', '--host', self.name]
        return self.cloud.run('manage', *command)[1]

    def health(self, address: str) -> tuple[str, str]:
        """Return state and reason of a device as the API shows them."""
        newest = {**ADMIN, 'OpenStack-API-Version': 'accelerator latest'}
        path = f'/v2/devices/{self.devices()[address]}'
        device = expect(self.cloud.api(newest).ask('GET', path), 200)
        device = device.get('device', device)
        return device['health'], device['health_reason']

    def providers(self) -> dict[str, ShownProvider]:
        """Return the providers by the part of their name after the host name.

        Emptied providers are left out: the agent offers nothing of them.
        """
        providers = {
            name.removeprefix(f'{self.name}_'): self._read_provider(provider['uuid'])
            for name, provider in self.cloud.providers().items()
        }
        return {name: entry for name, entry in providers.items() if entry is not None}

    def _read_provider(self, uuid: str) -> ShownProvider | None:
        """Return a provider; None if it is emptied or was deleted meanwhile."""
        answers = [
            self.cloud.placement.ask('GET', f'/resource_providers/{uuid}/{part}')
            for part in ('inventories', 'traits')
        ]
        if any(answer.status == 404 for answer in answers):
            return None
        inventories, traits = (expect(answer, 200) for answer in answers)
        entries = inventories['inventories']
        if EMPTIED in traits['traits'] and not entries:
            return None
        free = sum(
            inventory['total'] - inventory['reserved'] for inventory in entries.values()
        )
        totals = {name: inventory['total'] for name, inventory in entries.items()}
        # The trait of the health may change while a test runs.
        lasting = frozenset(traits['traits']) - {DEGRADED}
        return ShownProvider(uuid, totals, free, lasting)

    def devices(self) -> dict[str, str]:
        """Return the uuids of the devices by address."""
        query = (
            f"SELECT control_address, uuid FROM devices WHERE hostname = '{self.name}'"
        )
        return {str(address): str(uuid) for address, uuid in self.cloud.rows(query)}

    def handles(self, address: str) -> list[tuple[str, dict[str, str]]]:
        """Return type and info of the handles of a device, in the order of creation."""
        rows = self.cloud.rows(
            'SELECT h.type, h.info FROM attach_handles h'
            ' JOIN deployables p ON p.id = h.deployable_id'
            ' JOIN devices d ON d.id = p.device_id'
            f" WHERE d.hostname = '{self.name}' AND d.control_address = '{address}'"
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
    'u250-shared-group',
    'qat-services',
    'cx6dx-sriov',
    'nvme-lvm',
)


def _format(name: str, values: list[str]) -> str:
    """Return a list as one line of a configuration file."""
    return f'[{",".join(values)}]' if name == 'device_spec' else ','.join(values)
