# SPDX-License-Identifier: Apache-2.0
"""The kernel's side of a fabricated host: what is written changes the tree.

It follows ``mdev_core.c`` and ``iov.c`` of Linux, and NVIDIA's driver as far as it is
known: refusals with the errno of the real one, changes that are slow, and such that
hang until they are let go.
"""

import errno
import os
import re
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cyborg_lite.drivers import open_files
from tests.fakes import kernel_regions, kernel_vgpus, sysfs_device, sysfs_tree
from tests.fakes.kernel_vgpus import fail
from tests.fakes.sysfs_writer import Tree

_DEVICES: Final = 'sys/bus/pci/devices'
_ADDRESS: Final = r'(?P<address>[0-9a-f:]+\.[0-7])'
_LOCKED: Final = 'Cannot obtain unbindLock'


@dataclass
class _Failure:
    ending: str  # of a path
    number: int
    left: int  # writes that succeed before

    def due(self) -> bool:
        self.left -= 1
        return self.left < 0


class FakeKernel:
    """Of one host, which it builds. ``written`` is all that was asked of it."""

    def __init__(self, host: str, root: Path, most_virtual: int = 256) -> None:
        self.built = sysfs_tree.build(host, root, most_virtual)
        self._most_virtual = most_virtual
        self.root = root
        self.written: list[tuple[str, str]] = []  # path or tool, and text
        self.library_open = 0  # times that sriov-manage finds NVML in use
        self._failures: list[_Failure] = []
        self._hangs: list[tuple[str, threading.Event]] = []
        self._broken: list[str] = []  # parts of paths
        self._boots = 0
        self.regions = kernel_regions.Regions(root)
        self._rules: tuple[tuple[str, Callable[[str, str], None]], ...] = (
            (
                rf'{_DEVICES}/{_ADDRESS}/mdev_supported_types/(?P<kind>[^/]+)/create',
                self._create,
            ),
            (r'sys/bus/mdev/devices/(?P<uuid>[^/]+)/remove', self._remove),
            (rf'{_DEVICES}/{_ADDRESS}/nvidia/current_vgpu_type', self._set_type),
            (rf'{_DEVICES}/{_ADDRESS}/sriov_numvfs', self._number),
            (rf'{_DEVICES}/{_ADDRESS}/sriov_drivers_autoprobe', self._keep),
        )

    # --- what the product calls ---------------------------------------------------

    def write(self, root: Path, path: str, text: str) -> None:
        assert root == self.root
        self.written.append((path, text))
        self._trouble(path, text)
        if not (self.root / path).exists():
            raise fail(errno.ENOENT)
        for pattern, rule in self._rules:
            if re.fullmatch(pattern, path):
                rule(path, text.strip())
                return
        raise fail(errno.EACCES)

    def run(self, root: Path, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
        assert root == self.root
        self.written.append((tool, ' '.join(arguments)))
        self._trouble(tool, ' '.join(arguments))
        flag, address = arguments
        if self.library_open:
            self.library_open -= 1
            return 1, _LOCKED
        if flag == '-e':
            total = int(self._read(f'{_DEVICES}/{address}/sriov_totalvfs'))
            self._enable(address, min(total, self._most_virtual))
        else:
            self.disable(address)
        return 0, ''

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        tool, *arguments = command
        self._trouble(tool, ' '.join(arguments))
        return self.regions.load(Path(tool).name, arguments)

    def holders(self, root: Path, files: Sequence[str]) -> list[int]:
        return open_files.processes_with(str(root), files)

    # --- what a test does to the host ---------------------------------------------

    def refuse(self, ending: str, number: int, after: int = 0) -> None:
        """Fail the next write to a path that ends so, with this errno.

        :param after: so many of them succeed before
        """
        self._failures.append(_Failure(ending, number, after))

    def hang(self, ending: str) -> threading.Event:
        """Do not return from the next write to such a path until the event is set."""
        event = threading.Event()
        self._hangs.append((ending, event))
        return event

    def break_off(self, part: str) -> None:
        """Fail each write to a path or with an argument that has this in it."""
        self._broken.append(part)

    def mend(self) -> None:
        """From now on nothing fails that ``break_off`` has broken."""
        self._broken.clear()

    def open(self, file: str, process: int = 4242) -> Path:
        """A guest opens a file of ``/dev``; the link that stands for it."""
        link = self.root / f'proc/{process}/fd/12'
        link.parent.mkdir(parents=True)
        link.symlink_to(file)
        return link

    def lose(self, address: str) -> None:
        """The card falls off the bus; what is cached of it stays."""
        config = self.root / _DEVICES / address / 'config'
        config.write_bytes(b'\xff' * 64)

    def reload_driver(self) -> None:
        """The vendor's driver is unloaded and loaded again: what it made is gone."""
        for mdev in sorted((self.root / 'sys/bus/mdev/devices').glob('*')):
            self._take_away(mdev.resolve())
        for link in sorted((self.root / _DEVICES).glob('*/virtfn0')):
            self.disable(link.parent.name)
        kernel_vgpus.recount_all(self.root)

    def reboot(self) -> None:
        """All that lives in the kernel's memory is gone, and the boot id is new."""
        for process in (self.root / 'proc').glob('[0-9]*'):
            shutil.rmtree(process)
        shutil.rmtree(self.root / 'run', ignore_errors=True)
        self.reload_driver()
        self.regions.power_cycle()
        self._boots += 1
        boot = self.root / 'proc/sys/kernel/random/boot_id'
        boot.write_text(f'{self._boots:08d}-0000-4000-8000-000000000000\n')

    # --- the rules ----------------------------------------------------------------

    def _trouble(self, path: str, text: str) -> None:
        if any(part in f'{path} {text}' for part in self._broken):
            raise fail(errno.EIO)
        for each in self._hangs:
            if path.endswith(each[0]):
                self._hangs.remove(each)
                each[1].wait()
                break
        for failure in self._failures:
            if path.endswith(failure.ending) and failure.due():
                self._failures.remove(failure)
                raise fail(failure.number)

    def _create(self, path: str, uuid: str) -> None:
        if not re.fullmatch(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', uuid):
            raise fail(errno.EINVAL)
        if (self.root / 'sys/bus/mdev/devices' / uuid).exists():
            raise fail(errno.EEXIST)
        kind = (self.root / path).parent.resolve()
        if int((kind / 'available_instances').read_text()) < 1:
            raise fail(errno.ENOSPC)
        kernel_vgpus.create_mdev(self.root, kind, uuid)
        kernel_vgpus.recount(self.root, kind.parents[1])

    def _remove(self, path: str, text: str) -> None:
        if text != '1':
            raise fail(errno.EINVAL)
        mdev = (self.root / path).parent.resolve()
        files = [f'/dev/vfio/{(mdev / "iommu_group").resolve().name}']
        while self.holders(self.root, files):
            # As the real one: no signal ends it while a guest has the device.
            threading.Event().wait()
        self._take_away(mdev)
        kernel_vgpus.recount(self.root, mdev.parent)

    def _take_away(self, mdev: Path) -> None:
        kind = (mdev / 'mdev_type').resolve()
        group = (mdev / 'iommu_group').resolve()
        (self.root / 'sys/bus/mdev/devices' / mdev.name).unlink()
        (kind / 'devices' / mdev.name).unlink()
        (group / 'devices' / mdev.name).unlink(missing_ok=True)
        shutil.rmtree(mdev)

    def _set_type(self, path: str, text: str) -> None:
        function = (self.root / path).parents[1].resolve()
        group = (function / 'iommu_group').resolve().name
        if self.holders(self.root, [f'/dev/vfio/{group}']):
            raise fail(errno.EPERM)
        kernel_vgpus.set_type(function, text)
        kernel_vgpus.recount(self.root, function)

    def _number(self, path: str, text: str) -> None:
        card = (self.root / path).parent
        number, now = int(text), int(self._read(path))
        driver = (card / 'driver').resolve().name if (card / 'driver').exists() else ''
        if not driver or driver == 'nvidia':
            raise fail(errno.ENOENT)
        if number > int((card / 'sriov_totalvfs').read_text()):
            raise fail(errno.ERANGE)
        if number == now:
            return
        if number and now:
            raise fail(errno.EBUSY)
        if number:
            self._enable(card.name, number)
        else:
            self.disable(card.name)

    def _keep(self, path: str, text: str) -> None:
        (self.root / path).write_text(f'{text}\n')

    def _enable(self, address: str, count: int) -> None:
        card, *virtual = sysfs_tree.with_virtual(self.built.name, address, count)
        functions = {each.pci: each.directory for each in (card, *virtual)}
        tree = Tree(self.root, functions)
        for function in virtual:
            sysfs_device.write(tree, function)
        for index, function in enumerate(virtual):
            tree.link(f'{card.directory}/virtfn{index}', function.directory)
        tree.file(f'{card.directory}/sriov_numvfs', str(count))
        kernel_vgpus.recount(self.root, self.root / card.directory)

    def disable(self, address: str) -> None:
        """Take all virtual functions of a card away, whoever uses them."""
        card = (self.root / _DEVICES / address).resolve()
        for link in card.glob('virtfn*'):
            function = link.resolve()
            for mdev in (self.root / 'sys/bus/mdev/devices').glob('*'):
                if mdev.resolve().parent == function:
                    self._take_away(mdev.resolve())
            self._unplug(function)
            link.unlink()
        (card / 'sriov_numvfs').write_text('0\n')

    def _unplug(self, function: Path) -> None:
        for place in (
            self.root / _DEVICES,
            self.root / 'sys/class/mdev_bus',
            (function / 'driver').resolve(),
            (function / 'iommu_group').resolve() / 'devices',
        ):
            (place / function.name).unlink(missing_ok=True)
        shutil.rmtree(function)

    def _read(self, path: str) -> str:
        return os.fsdecode((self.root / path).read_bytes()).strip()
