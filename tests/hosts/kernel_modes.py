# SPDX-License-Identifier: Apache-2.0
"""Modes of emulated cards: QuickAssist services, GPU instances, ports of FPGAs.

The services follow ``adf_sysfs.c`` of Linux, the ports ``dfl.c``. The places of GPU
instances follow the MIG user guide of NVIDIA.
"""

import errno
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.hosts.kernel_errors import fail

_DEVICES: Final = 'sys/bus/pci/devices'
_SERVICES: Final = frozenset({'sym', 'asym', 'dc', 'dcc'})
_MIG: Final = 'proc/driver/nvidia/capabilities/gpu{}/mig'
_EIGHTH: Final = 5  # GiB of the cards of the fixtures
_PLACES: Final = {8: (0,), 4: (2, 1), 2: (6, 5, 4, 3), 1: (13, 12, 11, 10, 9, 8, 7)}
_NO_ROOM: Final = 'Unable to create a GPU instance: Insufficient Resources'


class CardModes:
    """Modes of all cards of a host."""

    def __init__(self, root: Path) -> None:
        self._root = root
        # Services at the start, by file.
        self._services = {
            file: file.read_text()
            for file in (root / 'sys/devices').rglob('qat/cfg_services')
        }
        self._released: dict[Path, Path] = {}  # saved ports, by their place
        self._divided: set[Path] = set()  # directories of created GPU instances

    def reset(self) -> None:
        """Restore what a reboot restores; created GPU instances vanish."""
        for file, text in self._services.items():
            if file.exists():
                file.write_text(text)
        for place in list(self._released):
            self._assign(place)
        for directory in self._divided:
            for instance in directory.glob('gi*'):
                shutil.rmtree(instance)

    # --- QuickAssist ---

    def set_state(self, path: str, text: str) -> None:
        if text not in ('up', 'down'):
            raise fail(errno.EINVAL)
        (self._root / path).write_text(f'{text}\n')

    def set_services(self, path: str, text: str) -> None:
        file = self._root / path
        services = text.split(';')
        is_up = (file.parent / 'state').read_text().strip() == 'up'
        if is_up or not _SERVICES.issuperset(services) or len(services) > 2:
            raise fail(errno.EINVAL)
        file.write_text(f'{text}\n')

    # --- GPU instances ---

    def run_smi(self, arguments: Sequence[str]) -> tuple[int, str]:
        """Emulate ``nvidia-smi``; return exit status and output."""
        if tuple(arguments[-2:]) == ('-mig', '1'):
            return 0, 'Enabled MIG Mode'
        assert tuple(arguments[:2]) == ('mig', '-i')
        directory = _find_mig_directory(self._root, arguments[2])
        self._divided.add(directory)
        match arguments[3:]:
            case ['-dgi']:
                return self._destroy_instances(directory, directory.glob('gi*'))
            case ['-gi', number, '-dgi']:
                return self._destroy_instances(directory, [directory / f'gi{number}'])
            case ['-cgi', profile]:
                return self._create_instance(directory, profile)
            case ['-lgi']:
                return 0, '\n'.join(map(_describe_instance, directory.glob('gi*')))
        return 6, 'No compute instances found'

    def _destroy_instances(
        self, directory: Path, instances: Iterable[Path]
    ) -> tuple[int, str]:
        """Destroy GPU instances, unless all of their profile have a vGPU."""
        vgpus = Counter(
            (link.resolve() / 'name').read_text().strip()
            for link in (self._root / 'sys/bus/mdev/devices').glob('*/mdev_type')
        )
        for instance in instances:
            profiles = Counter(map(_read_profile, directory.glob('gi*')))
            profile = slices, size = _read_profile(instance)
            name = f'GRID A100-{slices}-{size * _EIGHTH}C'
            if vgpus[name] >= profiles[profile]:
                return 19, 'Unable to destroy GPU instance: In use by another client'
            shutil.rmtree(instance)
        return 0, 'Successfully destroyed GPU instances'

    def _create_instance(self, directory: Path, profile: str) -> tuple[int, str]:
        profile, _, start = profile.partition(':')
        slices, _, memory = profile.removesuffix('gb').partition('g.')
        size = int(memory) // _EIGHTH
        used = {int(name.name[2:]) for name in directory.glob('gi*')}
        blocked = {place for item in used for place in _list_relatives(item)}
        free = [place for place in _PLACES[size] if place not in blocked]
        if start:
            free = [place for place in free if _find_start(place) == int(start)]
        if not free:
            return 19, _NO_ROOM
        access = directory / f'gi{free[0]}/access'
        access.parent.mkdir(parents=True)
        access.write_text(f'DeviceFileMode: 292\nSlices: {slices}\n')
        return 0, f'Successfully created GPU instance ID {free[0]}'

    # --- ports of FPGAs ---

    def run_fpgaport(self, arguments: Sequence[str]) -> tuple[int, str]:
        """Emulate ``fpgaport``; return exit status and output."""
        action, device, number = arguments
        (management,) = (self._root / 'sys/devices').rglob(Path(device).name)
        card = next(item for item in management.parents if (item / 'vendor').exists())
        place = self._find_port(management, int(number))
        if action == 'release':
            if place is None:
                return 1, 'ioctl: Device or resource busy'
            saved = self._root / f'released-{len(self._released)}'
            shutil.move(place, saved)
            self._released[place] = saved
            return 0, ''
        if any(card.glob('virtfn*')):
            return 1, 'ioctl: Device or resource busy'
        for released in list(self._released):
            if released.parent == management.parent:
                self._assign(released)
        return 0, ''

    def check_ports(self, card: Path) -> None:
        """Check that no port of an FPGA card is left on its physical function."""
        if any(card.glob('fpga_region/region*/dfl-port.*')):
            raise fail(errno.EBUSY)

    def _assign(self, place: Path) -> None:
        saved = self._released.pop(place)
        if saved.exists():
            shutil.move(saved, place)

    @staticmethod
    def _find_port(management: Path, number: int) -> Path | None:
        for port in management.parent.glob('dfl-port.*'):
            if int((port / 'id').read_text()) == number:
                return port
        return None


def count_instances(root: Path, address: str) -> Counter[tuple[int, int]]:
    """Return the number of GPU instances, by slices and eighths of the memory."""
    return Counter(map(_read_profile, _find_mig_directory(root, address).glob('gi*')))


def _read_profile(instance: Path) -> tuple[int, int]:
    """Return the slices of a GPU instance, and its eighths of the memory."""
    number = int(instance.name[2:])
    size = next(size for size, places in _PLACES.items() if number in places)
    slices = re.search(r'Slices: (\d)', (instance / 'access').read_text())
    return int(slices[1]) if slices else min(size, 3), size


def _describe_instance(instance: Path) -> str:
    """Return a line of `nvidia-smi mig -lgi`."""
    (slices, size), number = _read_profile(instance), int(instance.name[2:])
    name, start = f'{slices}g.{size * _EIGHTH}gb', _find_start(number)
    return f'|   0  MIG {name:15} {19:3} {number:8} {start:10}:{size}     |'


def _find_start(place: int) -> int:
    """Return the first eighth of the memory of a place in the tree of places."""
    depth = (place + 1).bit_length() - 1
    return (place + 1 - (1 << depth)) * (8 >> depth)


def _find_mig_directory(root: Path, address: str) -> Path:
    information = root / f'proc/driver/nvidia/gpus/{address}/information'
    minor = re.search(r'Device Minor:\s*(\d+)', information.read_text())
    assert minor is not None
    return root / _MIG.format(minor[1])


def _list_relatives(place: int) -> Iterator[int]:
    """Yield a place, the places that contain it, and the places in it."""
    yield place
    parent = place
    while parent:
        parent = (parent - 1) // 2
        yield parent
    below = [place]
    while below:
        below = [child for item in below for child in (2 * item + 1, 2 * item + 2)]
        below = [item for item in below if item <= 14]
        yield from below
