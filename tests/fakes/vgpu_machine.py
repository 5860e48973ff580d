# SPDX-License-Identifier: Apache-2.0
"""A cloud of real daemons whose host has NVIDIA cards and an emulated kernel."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from devstack.launcher.processes import Child
from tests.chaos.kit import HurtCloud
from tests.fakes import kernel_service
from tests.fakes.kernel import FakeKernel
from tests.fakes.kernel_service import KernelService
from tests.fakes.stack import Instance, expect

_FUNCTIONS: Final = 'sys/bus/pci/devices'
_MDEVS: Final = 'sys/bus/mdev/devices'


@dataclass(frozen=True, slots=True)
class Generation:
    """How the vGPUs of a host are made: two providers, on two cards."""

    fixture: str
    rules: Sequence[str]
    cards: tuple[str, str]  # by the end of their providers' names
    each: tuple[int, int]  # vGPUs that a guest is given of them
    written: str = '/create'  # to make one: how the path ends

    def wrote(self, path: str) -> bool:
        """Whether a write to that path makes one."""
        return path.endswith(self.written)


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
class Made:
    """A vGPU that exists on the host."""

    function: str
    kind: str  # as the kernel calls it
    uuid: str = ''  # of an mdev


class VgpuHost:
    """Of one generation. What strangers made of it is there from the beginning.

    It is the cloud's current host for as long as it is open.
    """

    def __init__(
        self, cloud: HurtCloud, directory: Path, generation: Generation
    ) -> None:
        self.cloud = cloud
        self.generation = generation
        self.name = cloud.next_host()
        self.directory = directory
        self.root = directory / 'host'
        self.kernel = FakeKernel(generation.fixture, self.root, most_virtual=4)
        self.service = KernelService(self.kernel)
        self.guests: list[Instance] = []
        self.starts = 0
        self.agent: Child | None = None  # None: it does not run
        self.module = kernel_service.__name__
        self.settings: dict[str, object] = {}  # more of [agent]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *trouble: object) -> None:
        if self.agent is not None:
            print(self.agent.tail(60), file=sys.stderr)
        self.kill_agent()
        self.service.close()

    # --- the host ---

    def begin_agent(self, patience: int = 60, timeout: int = 30) -> Child:
        """As systemd does; without waiting until it is ready.

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
            environment=self.service.environment('cyborg_lite.cmd.agent'),
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
        """All that the kernel held is gone, and so is the agent."""
        self.kill_agent()
        self.kernel.reboot()

    def made(self) -> set[Made]:
        """All vGPUs of the host, whoever made them."""
        mdevs = {
            Made(link.resolve().parent.name, (link / 'mdev_type').resolve().name, uuid)
            for uuid, link in self._entries(_MDEVS)
        }
        types = {
            address: (link / 'nvidia/current_vgpu_type')
            for address, link in self._entries(_FUNCTIONS)
        }
        shown = {address: _text(file) for address, file in types.items()}
        return mdevs | {Made(a, kind) for a, kind in shown.items() if kind != '0'}

    def functions(self) -> set[str]:
        return {name for name, _ in self._entries(_FUNCTIONS)}

    def _entries(self, directory: str) -> Iterator[tuple[str, Path]]:
        where = self.root / directory
        if where.exists():
            yield from ((link.name, link) for link in where.iterdir())

    # --- guests ---

    def boot_on(self, number: int) -> Instance:
        """Ask for vGPUs of the first or the second card; the bind is accepted."""
        cloud, count = self.cloud, self.generation.each[number]
        card = f'{self.name}_{self.generation.cards[number]}'
        found = cloud.until(lambda: cloud.providers().get(card), f'{card} is offered')
        provider = str(found['uuid'])
        cloud.until(lambda: 'VGPU' in cloud.inventory(provider), 'it has an inventory')
        guest = Instance(cloud, provider, {'VGPU': count})
        self.guests.append(guest)
        guest.create_arqs(cloud.create_profile('VGPU', count))
        guest.allocate()
        expect(guest.bind(), 202)
        return guest

    def boot_bound(self, number: int) -> Instance:
        guest = self.boot_on(number)
        self.cloud.until(guest.resolved, 'Nova hears of every request')
        assert guest.states() == {'Bound'}, guest.shown()
        return guest

    def end(self, guest: Instance) -> None:
        """Delete it, and wait until nothing more is to be done for it."""
        guest.delete()
        self.cloud.until(guest.gone)
        self.cloud.settle()

    def held(self) -> list[str]:
        """Requests of this host's guests that own a handle."""
        ours = {arq for guest in self.guests for arq in guest.arqs}
        return [arq for arq in self.cloud.owners() if arq in ours]


def _text(file: Path) -> str:
    """Of a type; none where the function has none, or goes at this moment."""
    try:
        return file.read_text().strip()
    except OSError:
        return '0'


def handed(guest: Instance) -> set[Made]:
    """What its handles say that it was given; of a type that they do not always say."""
    return {_told(arq) for arq in guest.shown()}


# Any: JSON of the API.
def _told(arq: Mapping[str, Any]) -> Made:
    info = arq['attach_handle_info']
    place = '{domain}:{bus}:{device}.{function}'.format(**info)
    if arq['attach_handle_type'] == 'MDEV':
        return Made(place, info['asked_type'], arq['attach_handle_uuid'])
    return Made(place, '1155')


@contextmanager
def running(directory: Path, transport_url: str) -> Iterator[HurtCloud]:
    """A cloud with an API and a conductor; hosts come and go."""
    connection = f'sqlite:///{directory}/db.sqlite'
    with HurtCloud(directory, transport_url, connection) as cloud:
        cloud.migrate()
        cloud.start('conductor')
        cloud.start('api')
        yield cloud
