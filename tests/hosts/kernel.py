# SPDX-License-Identifier: Apache-2.0
"""Emulated kernel of a fixture host: writes to sysfs files change the tree.

It follows ``mdev_core.c`` and ``iov.c`` of Linux, and NVIDIA's driver as far as that is
documented. A refused write raises the errno of the real kernel. A write may hang until
the test lets it return.
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

from cyborg_lite.drivers.host import privileged
from tests.hosts import (
    kernel_bindings,
    kernel_fabric,
    kernel_modes,
    kernel_regions,
    kernel_vgpus,
    sysfs_device,
    sysfs_tree,
)
from tests.hosts.kernel_errors import fail
from tests.hosts.sysfs_writer import Tree

_DEVICES: Final = 'sys/bus/pci/devices'
_ADDRESS: Final = r'(?P<address>[0-9a-f:]+\.[0-7])'
_LOCKED: Final = 'Cannot obtain unbindLock'


@dataclass
class _Failure:
    path_ending: str
    number: int  # errno
    successes: int  # writes that succeed before the failure

    def is_due(self) -> bool:
        self.successes -= 1
        return self.successes < 0


class FakeKernel:
    """Emulated kernel of one host, which it builds.

    ``written`` lists all writes and tool calls. Changes of the tree are serialized, as
    the real kernel serializes them: without a lock one thread would remove a directory
    while another thread creates a device in it. A write that hangs holds no lock.
    """

    def __init__(self, host: str, root: Path, most_virtual: int = 256) -> None:
        self.built = sysfs_tree.build(host, root, most_virtual)
        self._most_virtual = most_virtual
        self.root = root
        self.written: list[tuple[str, str]] = []  # path or tool, and text
        self.library_open = 0  # times that sriov-manage finds NVML in use
        # What each reset writes to files of its function, by name: a fault.
        self.reset_effects: dict[str, bytes] = {}
        self.probe_effects: dict[Path, str] = {}  # the same of a bind to a driver
        self._failures: list[_Failure] = []
        self._hangs: list[tuple[str, threading.Event]] = []
        self._broken: list[str] = []  # parts of paths
        self._tree_lock = threading.RLock()
        self._boots = 0
        self.regions = kernel_regions.Regions(root)
        self._modes = kernel_modes.CardModes(root)
        self.fabric = kernel_fabric.FabricManager(root)
        self._bindings = kernel_bindings.Bindings(root)
        self._rules: tuple[tuple[str, Callable[[str, str], None]], ...] = (
            (
                rf'{_DEVICES}/{_ADDRESS}/mdev_supported_types/(?P<mdev_type>[^/]+)/create',
                self._create,
            ),
            (r'sys/bus/mdev/devices/(?P<uuid>[^/]+)/remove', self._remove),
            (rf'{_DEVICES}/{_ADDRESS}/nvidia/current_vgpu_type', self._set_type),
            (rf'{_DEVICES}/{_ADDRESS}/sriov_numvfs', self._set_number),
            (rf'{_DEVICES}/{_ADDRESS}/sriov_drivers_autoprobe', self._set_autoprobe),
            (rf'{_DEVICES}/{_ADDRESS}/reset', self._reset),
            (r'sys/bus/pci/drivers/[\w-]+/unbind', self._unbind),
            (r'sys/bus/pci/drivers_probe', self._probe),
            (rf'{_DEVICES}/{_ADDRESS}/qat/state', self._modes.set_state),
            (rf'{_DEVICES}/{_ADDRESS}/qat/cfg_services', self._modes.set_services),
        )

    # --- interface of the product ---------------------------------------------------

    def write(self, root: Path, path: str, text: str) -> None:
        assert root == self.root
        self.written.append((path, text))
        self._inject_fault(path, text)
        if not (self.root / path).exists():
            raise fail(errno.ENOENT)
        for pattern, rule in self._rules:
            if re.fullmatch(pattern, path):
                rule(path, text.strip())
                return
        raise fail(errno.EACCES)

    def run(self, root: Path, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
        assert root == self.root
        tool = Path(tool).name
        self.written.append((tool, ' '.join(arguments)))
        self._inject_fault(tool, ' '.join(arguments))
        if tool == 'mdevctl':
            return self._undefine(*arguments)
        if tool == 'fpgaport':
            return self._modes.run_fpgaport(arguments)
        if tool == 'fmpm':
            return self.fabric.run(arguments)
        if tool == 'nvidia-smi':
            return self._run_smi(arguments)
        flag, address = arguments
        if self.library_open:
            self.library_open -= 1
            return 1, _LOCKED
        with self._tree_lock:
            if flag == '-e':
                total = int(self._read(f'{_DEVICES}/{address}/sriov_totalvfs'))
                self._enable(address, min(total, self._most_virtual))
            else:
                self.disable(address)
        return 0, ''

    def _run_smi(self, arguments: Sequence[str]) -> tuple[int, str]:
        with self._tree_lock:
            result = self._modes.run_smi(arguments)
            address = arguments[list(arguments).index('-i') + 1]
            kernel_vgpus.recount(self.root, (self.root / _DEVICES / address).resolve())
        return result

    def _undefine(self, action: str, uuid: str, parent: str) -> tuple[int, str]:
        assert action == 'undefine'
        uuid, parent = uuid.removeprefix('--uuid='), parent.removeprefix('--parent=')
        definition = self.root / 'etc/mdevctl.d' / parent / uuid
        if not definition.exists():
            return 1, 'Unable to find the definition'
        definition.unlink()
        return 0, ''

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        tool, *arguments = command
        self._inject_fault(tool, ' '.join(arguments))
        return self.regions.load(Path(tool).name, arguments)

    def holders(self, root: Path, files: Sequence[str]) -> list[int]:
        return privileged.find_processes(str(root), files)

    # --- interface of libvirt -------------------------------------------------------

    def attach(self, root: Path, address: str) -> None:
        """Bind a function to vfio-pci, as libvirt does for ``managed='yes'``."""
        assert root == self.root
        with self._tree_lock:
            self._bindings.attach(address)

    def detach(self, root: Path, address: str) -> None:
        """Return a function to the driver that it had before."""
        assert root == self.root
        with self._tree_lock:
            self._bindings.detach(address)

    # --- control by tests -----------------------------------------------------------

    def define(self, parent: str, uuid: str, mdev_type: str) -> Path:
        """Define an mdev with autostart, as libvirt does; return the definition."""
        definition = self.root / 'etc/mdevctl.d' / parent / uuid
        definition.parent.mkdir(parents=True, exist_ok=True)
        definition.write_text(f'{{"mdev_type": "{mdev_type}", "start": "auto"}}')
        return definition

    def refuse(self, ending: str, number: int, after: int = 0) -> None:
        """Fail the next write to a path with this ending, with an errno.

        :param after: number of writes that succeed before
        """
        self._failures.append(_Failure(ending, number, after))

    def hang(self, ending: str) -> threading.Event:
        """Block the next write to a path with this ending until the event is set."""
        event = threading.Event()
        self._hangs.append((ending, event))
        return event

    def break_off(self, part: str) -> None:
        """Fail each write whose path or text contains the part."""
        self._broken.append(part)

    def repair(self) -> None:
        """End the failures that ``break_off`` began."""
        self._broken.clear()

    def open(self, file: str, process: int = 4242) -> Path:
        """Open a file of ``/dev`` as a guest; return the link of its descriptor."""
        link = self.root / f'proc/{process}/fd/12'
        link.parent.mkdir(parents=True)
        link.symlink_to(file)
        return link

    def lose(self, address: str) -> None:
        """Disconnect a card from the bus; cached sysfs files stay."""
        config = self.root / _DEVICES / address / 'config'
        config.write_bytes(b'\xff' * 64)

    def reload_driver(self) -> None:
        """Unload and load the vendor's driver, which removes its devices."""
        with self._tree_lock:
            for mdev in sorted((self.root / 'sys/bus/mdev/devices').glob('*')):
                self._remove_mdev(mdev.resolve())
            for link in sorted((self.root / _DEVICES).glob('*/virtfn0')):
                self.disable(link.parent.name)
            kernel_vgpus.recount_all(self.root)

    def reboot(self) -> None:
        """Clear the state in the kernel's memory and change the boot id."""
        for process in (self.root / 'proc').glob('[0-9]*'):
            shutil.rmtree(process)
        shutil.rmtree(self.root / 'run', ignore_errors=True)
        with self._tree_lock:
            self._bindings.detach_all()
        self.reload_driver()
        self.regions.power_cycle()
        self._modes.reset()
        self._boots += 1
        boot = self.root / 'proc/sys/kernel/random/boot_id'
        boot.write_text(f'{self._boots:08d}-0000-4000-8000-000000000000\n')

    # --- emulation ------------------------------------------------------------------

    def _inject_fault(self, path: str, text: str) -> None:
        if any(part in f'{path} {text}' for part in self._broken):
            raise fail(errno.EIO)
        for hang in self._hangs:
            if path.endswith(hang[0]):
                self._hangs.remove(hang)
                hang[1].wait()
                break
        for failure in self._failures:
            if path.endswith(failure.path_ending) and failure.is_due():
                self._failures.remove(failure)
                raise fail(failure.number)

    def _create(self, path: str, uuid: str) -> None:
        if not re.fullmatch(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', uuid):
            raise fail(errno.EINVAL)
        with self._tree_lock:
            if (self.root / 'sys/bus/mdev/devices' / uuid).exists():
                raise fail(errno.EEXIST)
            mdev_type = (self.root / path).parent.resolve()
            if int((mdev_type / 'available_instances').read_text()) < 1:
                raise fail(errno.ENOSPC)
            kernel_vgpus.create_mdev(self.root, mdev_type, uuid)
            kernel_vgpus.recount(self.root, mdev_type.parents[1])

    def _remove(self, path: str, text: str) -> None:
        if text != '1':
            raise fail(errno.EINVAL)
        mdev = (self.root / path).parent.resolve()
        files = [f'/dev/vfio/{(mdev / "iommu_group").resolve().name}']
        while self.holders(self.root, files):
            # In the real kernel no signal ends the write while a guest has the device.
            threading.Event().wait()
        with self._tree_lock:
            if not mdev.exists():
                raise fail(errno.ENOENT)
            self._remove_mdev(mdev)
            kernel_vgpus.recount(self.root, mdev.parent)

    def _remove_mdev(self, mdev: Path) -> None:
        mdev_type = (mdev / 'mdev_type').resolve()
        group = (mdev / 'iommu_group').resolve()
        (self.root / 'sys/bus/mdev/devices' / mdev.name).unlink()
        (mdev_type / 'devices' / mdev.name).unlink()
        (group / 'devices' / mdev.name).unlink(missing_ok=True)
        shutil.rmtree(mdev)

    def _set_type(self, path: str, text: str) -> None:
        function = (self.root / path).parents[1].resolve()
        group = (function / 'iommu_group').resolve().name
        if self.holders(self.root, [f'/dev/vfio/{group}']):
            raise fail(errno.EPERM)
        with self._tree_lock:
            kernel_vgpus.set_type(function, text)
            kernel_vgpus.recount(self.root, function)

    def _set_number(self, path: str, text: str) -> None:
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
        with self._tree_lock:
            if number:
                self._modes.check_ports(card)
                self._enable(card.name, number)
            else:
                self.disable(card.name)

    def _reset(self, path: str, text: str) -> None:
        if text != '1':
            raise fail(errno.EINVAL)
        for name, content in self.reset_effects.items():
            (self.root / path).with_name(name).write_bytes(content)

    def _unbind(self, path: str, text: str) -> None:
        if not (self.root / path).with_name(text).exists():
            raise fail(errno.ENODEV)
        with self._tree_lock:
            self._bindings.attach(text, '')

    def _probe(self, path: str, text: str) -> None:
        if not (self.root / _DEVICES / text).exists():
            raise fail(errno.ENODEV)
        with self._tree_lock:
            self._bindings.detach(text)
            for file, content in self.probe_effects.items():
                file.write_text(content)

    def _set_autoprobe(self, path: str, text: str) -> None:
        (self.root / path).write_text(f'{text}\n')

    def _enable(self, address: str, count: int) -> None:
        card, *virtual = sysfs_tree.with_virtual(self.built.name, address, count)
        functions = {entry.pci: entry.directory for entry in (card, *virtual)}
        tree = Tree(self.root, functions)
        for function in virtual:
            sysfs_device.write(tree, function)
        for index, function in enumerate(virtual):
            tree.link(f'{card.directory}/virtfn{index}', function.directory)
        tree.file(f'{card.directory}/sriov_numvfs', str(count))
        kernel_vgpus.recount(self.root, self.root / card.directory)

    def disable(self, address: str) -> None:
        """Remove all virtual functions of a card, used ones included."""
        with self._tree_lock:
            card = (self.root / _DEVICES / address).resolve()
            for link in card.glob('virtfn*'):
                function = link.resolve()
                for mdev in (self.root / 'sys/bus/mdev/devices').glob('*'):
                    if mdev.resolve().parent == function:
                        self._remove_mdev(mdev.resolve())
                self._unplug(function)
                link.unlink()
            (card / 'sriov_numvfs').write_text('0\n')

    def _unplug(self, function: Path) -> None:
        for directory in (
            self.root / _DEVICES,
            self.root / 'sys/class/mdev_bus',
            (function / 'driver').resolve(),
            (function / 'iommu_group').resolve() / 'devices',
        ):
            (directory / function.name).unlink(missing_ok=True)
        shutil.rmtree(function)

    def _read(self, path: str) -> str:
        return os.fsdecode((self.root / path).read_bytes()).strip()
