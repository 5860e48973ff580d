# SPDX-License-Identifier: Apache-2.0
"""Cloud of real daemons whose host has NVIDIA cards and an emulated kernel."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from devstack.launcher.processes import Child
from tests.chaos.faulty_cloud import FaultyCloud
from tests.doubles.nova_guest import HostDevice, NovaHost
from tests.hosts import kernel_service
from tests.hosts.kernel import FakeKernel
from tests.hosts.kernel_service import KernelService
from tests.servers.stack import NOVA, Instance, expect

_FUNCTIONS: Final = 'sys/bus/pci/devices'
_MDEVS: Final = 'sys/bus/mdev/devices'


@dataclass(frozen=True, slots=True)
class Generation:
    """Creation of vGPUs on a host: two providers, on two cards."""

    fixture: str
    rules: Sequence[str]
    cards: tuple[str, str]  # endings of the names of their providers
    vgpus_per_card: tuple[int, int]  # vGPUs per instance on each card
    creation_path: str = (
        '/create'  # ending of the path that is written to create a vGPU
    )


GENERATIONS: Final = {
    'mdevs': Generation(
        't4-mdev',
        ('0000:af:00.0=nvidia-231', '0000:3b:00.0=nvidia-230'),
        ('0000:af:00.0', '0000:3b:00.0'),
        (2, 2),
    ),
    'mdevs of virtual functions': Generation(
        'a100-sriov-mig',
        ('0000:41:00.0=nvidia-471', '0000:c1:00.0=nvidia-474+nvidia-476'),
        ('0000:41:00.0', '0000:c1:00.0_A100_1_5C'),
        (2, 2),
    ),
    'types of virtual functions': Generation(
        'l40s-vendor-vfio',
        ('0000:82:00.0=1155', '0000:c3:00.0=L40S-24Q'),
        ('0000:c3:00.0', '0000:82:00.0'),
        (2, 1),
        '/current_vgpu_type',
    ),
}


@dataclass(frozen=True, slots=True)
class Vgpu:
    """Existing vGPU of the host."""

    function: str
    kind: str  # as in the kernel
    uuid: str = ''  # set for an mdev


class VgpuHost:
    """Host of one generation. It has foreign vGPUs from the beginning.

    It is the current host of the cloud while it is open.
    """

    def __init__(
        self,
        cloud: FaultyCloud,
        directory: Path,
        generation: Generation,
        kernel: Callable[[str, Path, int], FakeKernel] = FakeKernel,
    ) -> None:
        self.cloud = cloud
        self.generation = generation
        self.name = cloud.next_host()
        self.directory = directory
        self.root = directory / 'host'
        self.kernel = kernel(generation.fixture, self.root, 4)
        self.service = KernelService(self.kernel)
        self.guests: list[Instance] = []
        self.starts = 0
        self.agent: Child | None = None  # None: it does not run
        self.module = kernel_service.__name__
        self.settings: dict[str, object] = {}  # further options of [agent]
        # A failed test may leave jobs that wait for the agent of its host.
        self.former_jobs = self._list_jobs()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *trouble: object) -> None:
        if self.agent is not None:
            print(self.agent.tail(60), file=sys.stderr)
        self.kill_agent()
        self.service.close()

    # --- the host ---

    def begin_agent(self, patience: int = 60, timeout: int = 30) -> Child:
        """Start the agent as systemd does, without waiting until it is ready.

        :param timeout: seconds that a change of a card may take
        """
        self.starts += 1
        options: dict[str, dict[str, object]] = {
            'agent': {
                'enabled_drivers': 'nvidia_gpu_driver',
                'sysfs_root': self.root,
                'state_path': self.directory / 'agent',
                'recovery_patience': patience,
                **self.settings,
            },
            'nvidia_gpu_driver': {
                'vgpu_types': ','.join(self.generation.rules),
                'change_timeout': timeout,
            },
        }
        self.agent = self.cloud.begin(
            f'{self.name}-{self.starts}',
            'agent',
            [],
            options,
            module=self.module,
            environment=self.service.environment('cyborg_lite.cmd.daemons.agent'),
        )
        return self.agent

    def start_agent(self, patience: int = 60, timeout: int = 30) -> Child:
        agent = self.begin_agent(patience, timeout)
        agent.until(lambda: 'Ready.' in self.cloud.log(agent))
        return agent

    def kill_agent(self) -> None:
        if self.agent is not None:
            self.agent.kill()
            self.cloud.children.remove(self.agent)
        self.agent = None

    def power_cycle(self) -> None:
        """Stop the agent and clear the state of the kernel."""
        self.kill_agent()
        self.kernel.reboot()

    def list_vgpus(self) -> set[Vgpu]:
        """Return all vGPUs of the host, foreign ones included."""
        mdevs = {
            Vgpu(link.resolve().parent.name, (link / 'mdev_type').resolve().name, uuid)
            for uuid, link in self._entries(_MDEVS)
        }
        types = {
            address: (link / 'nvidia/current_vgpu_type')
            for address, link in self._entries(_FUNCTIONS)
        }
        types_by_function = {address: _text(file) for address, file in types.items()}
        return mdevs | {
            Vgpu(a, kind) for a, kind in types_by_function.items() if kind != '0'
        }

    def functions(self) -> set[str]:
        return {name for name, _ in self._entries(_FUNCTIONS)}

    def _entries(self, directory: str) -> Iterator[tuple[str, Path]]:
        directory_path = self.root / directory
        if directory_path.exists():
            yield from ((link.name, link) for link in directory_path.iterdir())

    # --- guests ---

    def find_provider(self, card: str) -> str:
        """Return the uuid of the provider of a card, once it has an inventory.

        :param card: ending of the name of the provider
        """
        name = f'{self.name}_{card}'

        def find() -> Mapping[str, object] | None:
            provider = self.cloud.providers().get(name)
            has_inventory = provider and self.cloud.inventory(provider['uuid'])
            return provider if has_inventory else None

        return str(self.cloud.until(find, f'{name} is offered')['uuid'])

    def request(self, card: str, resource_class: str, count: int = 1) -> Instance:
        """Return an instance with ARQs and an allocation of a card."""
        provider = self.find_provider(card)
        guest = self.cloud.request(resource_class, count, provider=provider)
        self.guests.append(guest)
        return guest

    def boot_on(self, number: int, resource_class: str = 'VGPU') -> Instance:
        """Send a bind with units of the first or second card."""
        card = self.generation.cards[number]
        count = self.generation.vgpus_per_card[number]
        guest = self.request(card, resource_class, count)
        expect(guest.bind(), 202)
        return guest

    def boot_bound(self, number: int, resource_class: str = 'VGPU') -> Instance:
        guest = self.boot_on(number, resource_class)
        guest.wait_until_bound()
        return guest

    def define_guest(self, guest: Instance) -> list[HostDevice]:
        """Return the devices of a guest as Nova 34 defines it. It creates mdevs."""
        answer = expect(guest.cloud.api(NOVA).ask('GET', guest.path), 200)
        return NovaHost(self.kernel).define_guest(answer['arqs'])

    def end(self, guest: Instance) -> None:
        """Delete an instance and wait until its cleanup is finished."""
        guest.end()
        self.settle()

    def settle(self) -> None:
        """Wait until no job is left that began with this host."""
        self.cloud.until(
            lambda: self._list_jobs() <= self.former_jobs, 'every job is finished'
        )

    def _list_jobs(self) -> set[str]:
        query = "SELECT uuid FROM jobs WHERE kind != 'reconcile'"
        return {uuid for (uuid,) in self.cloud.rows(query)}

    def list_allocated_arqs(self) -> list[str]:
        """Return the ARQs of this host's instances that own a handle."""
        own_arqs = {arq for guest in self.guests for arq in guest.arqs}
        return [arq for arq in self.cloud.owners() if arq in own_arqs]


def _text(file: Path) -> str:
    """Return the type in a file; empty if the file is missing."""
    try:
        return file.read_text().strip()
    except OSError:
        return '0'


def read_vgpus(guest: Instance) -> set[Vgpu]:
    """Return the vGPUs of the handles of an instance. Handles may lack the type."""
    return {_read_vgpu(arq) for arq in guest.list_arqs()}


# Any: JSON of the API.
def _read_vgpu(arq: Mapping[str, Any]) -> Vgpu:
    info = arq['attach_handle_info']
    place = '{domain}:{bus}:{device}.{function}'.format(**info)
    if arq['attach_handle_type'] == 'MDEV':
        return Vgpu(place, info['asked_type'], arq['attach_handle_uuid'])
    return Vgpu(place, '1155')


@contextmanager
def run_cloud(directory: Path, transport_url: str) -> Iterator[FaultyCloud]:
    """Start a cloud with an API and a conductor."""
    connection = f'sqlite:///{directory}/db.sqlite'
    with FaultyCloud(directory, transport_url, connection) as cloud:
        cloud.migrate()
        cloud.start('conductor')
        cloud.start('api')
        yield cloud
