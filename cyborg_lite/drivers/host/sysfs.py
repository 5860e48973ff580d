# SPDX-License-Identifier: Apache-2.0
"""Read access to the files of the host. Drivers read through ``Host`` only.

Files of sysfs and procfs can vanish while they are read. A failed read of any kind
returns None and does not affect the other reads.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, overload

from cyborg_lite.drivers.host.kernel import PCI_DEVICES, Kernel, PrivilegedKernel

T = TypeVar('T')


class cached_property(Generic[T]):  # noqa: N801  # used as the one of the library
    """A property that is computed at the first read, without a lock.

    ``functools.cached_property`` of Python 3.11 has one lock for all objects of a
    class. A read from the file of one card that hangs would block those of all others.
    """

    # Any: the object may be of any class.
    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__
        self._name = ''

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> 'cached_property[T]': ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> 'cached_property[T] | T':
        """Return the value; two threads at the same time may both compute it."""
        if instance is None:
            return self
        value = self._compute(instance)
        vars(instance)[self._name] = value
        return value


_ADDRESS: Final = re.compile(r'0*([0-9a-f]{4,}):([0-9a-f]{2}):([01][0-9a-f])\.([0-7])')
_VIRTUAL: Final = re.compile(r'virtfn(\d+)')
_MAX_FILE_SIZE: Final = 1 << 20  # bytes; a sysfs file has at most 4 KiB
# Files of devices; the other files, such as /proc/mounts, have long lines.
_DEVICE_FILES: Final = ('sys/', 'proc/driver/nvidia/gpus/')
_MAX_DEVICE_TEXT: Final = 1 << 16  # characters
_MAX_LINE: Final = 128  # characters; the maximum of a serial number in a report
_MAX_NUMBER: Final = (1 << 64) - 1  # the kernel has no larger ones
_MAX_NUMA_NODE: Final = 1023  # kernel: NODES_SHIFT is at most 10
_CONFIG_HEADER: Final = 64  # bytes; unprivileged processes can read no more
_STUB: Final = 'pci-stub'  # does nothing, so that no other driver takes a function


def pci_address(text: str) -> str | None:
    """Return a PCI address as sysfs writes it, or None if the text is not an address.

    The result is in lower case and has a domain of at least four digits. Other tools
    print eight digits and capitals, and the domains behind Intel VMD have five digits.
    """
    match = _ADDRESS.fullmatch(text.strip().lower())
    return None if match is None else '{}:{}:{}.{}'.format(*match.groups())


@dataclass(frozen=True)
class Host:
    """A host and the directory that contains its files.

    Each path is relative to ``root``, as in ``sys/bus/pci/devices``. A path that leads
    out of ``root``, through a link for instance, cannot be read.
    """

    name: str
    """The name of the resource provider of the host in Placement."""
    root: Path = Path('/')
    kernel: Kernel = field(default_factory=PrivilegedKernel, compare=False, repr=False)
    """Makes changes; drivers use it through a ``Writer``."""
    has_system_disk: bool = field(default=True, kw_only=True)
    """False: the root file system is on no disk of the host."""

    def raw(self, path: str, size: int = _MAX_FILE_SIZE) -> bytes | None:
        """Return the first ``size`` bytes of a file, or None if it cannot be read."""
        location = self._resolve(path)
        if location is None:
            return None
        try:
            # O_NONBLOCK: a FIFO without a writer would block for ever.
            file = os.open(location, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return _read(file, size) if stat.S_ISREG(os.fstat(file).st_mode) else None
        except OSError:
            return None
        finally:
            os.close(file)

    def text(self, path: str) -> str | None:
        """Return the stripped text of a file, or None if it is empty or unreadable.

        Characters that cannot be printed are removed. A file with more than 1 MiB is
        unreadable. A file of sysfs or of a card below /proc with more than 64 KiB is,
        too, and its lines with more than 128 characters are removed: they are no names,
        ids or numbers of a card.
        """
        content = self.raw(path, _MAX_FILE_SIZE + 1) or b''
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return None
        if len(content) > _MAX_FILE_SIZE:
            return None  # such as a part of a mount table
        lines = [_remove_control_characters(line) for line in text.split('\n')]
        if path.startswith(_DEVICE_FILES):
            if len(text) > _MAX_DEVICE_TEXT:
                return None
            lines = [line for line in lines if len(line) <= _MAX_LINE]
        return '\n'.join(lines).strip() or None

    def number(self, path: str, maximum: int = _MAX_NUMBER) -> int | None:
        """Return the number in a file, decimal or with 0x, or None without one.

        :param maximum: of its absolute value; a larger number is unknown
        """
        try:
            number = int(self.text(path) or '', 0)
        except ValueError:
            return None
        return number if abs(number) <= maximum else None

    def names(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a directory; empty if it does not exist."""
        location = self._resolve(path)
        try:
            names = () if location is None else os.listdir(location)
            return tuple(sorted(name for name in names if name.isprintable()))
        except OSError:
            return ()

    def is_unreadable(self, path: str) -> bool:
        """Return True if a file or directory may have content that cannot be read.

        What does not exist has no content.
        """
        location = self._resolve(path)
        if location is None:
            return True
        try:
            os.listdir(location)
        except FileNotFoundError:
            return False
        except NotADirectoryError:
            return self.text(path) is None and self.raw(path) != b''
        except OSError:
            return True
        return False

    def target(self, path: str) -> str | None:
        """Return the base name of the link target, or None if there is no link."""
        location = self._resolve(path)
        if not location or not self.has(path):
            return None
        name = os.path.basename(location)
        return name if name.isprintable() else None

    def ancestors(self, path: str) -> tuple[str, ...]:
        """Return the names of the directories above a file, the topmost first.

        Links are followed. The result is empty if the file does not exist.
        """
        location = self._resolve(path)
        if location is None or not os.path.exists(location):
            return ()
        return Path(os.path.relpath(location, os.path.realpath(self.root))).parts[:-1]

    def has(self, path: str) -> bool:
        """Return True if the file or directory exists; links are followed."""
        location = self._resolve(path)
        return location is not None and os.path.exists(location)

    @property
    def boot_id(self) -> str:
        """The id that the kernel generates at each boot; empty if unreadable."""
        return self.text('proc/sys/kernel/random/boot_id') or ''

    def pci_functions(self) -> Iterator['PciFunction']:
        """Yield all PCI functions of the host by address, bridges included."""
        for name in self.names(PCI_DEVICES):
            address = pci_address(name)
            if address is not None:
                yield PciFunction(self, address)

    def _resolve(self, path: str) -> str | None:
        root = os.path.realpath(self.root)
        try:
            location = os.path.realpath(os.path.join(root, path))
        except (OSError, ValueError):
            return None  # a link in the path has just been removed, or it has a NUL
        return location if os.path.commonpath((root, location)) == root else None


def _read(file: int, size: int) -> bytes:
    """Return the first bytes of an open file. One read may return less than a file."""
    chunks = []
    while size > 0 and (chunk := os.read(file, size)):
        chunks.append(chunk)
        size -= len(chunk)
    return b''.join(chunks)


def _remove_control_characters(line: str) -> str:
    return ''.join(char for char in line if char.isprintable() or char == '\t')


@dataclass(frozen=True)
class PciFunction:
    """The sysfs directory of one PCI function.

    Each property is read once and cached, so that one scan is consistent. The next
    scan creates new objects.
    """

    host: Host
    address: str

    def path(self, name: str) -> str:
        """Return the path of one of its files, for the methods of ``Host``."""
        return f'{PCI_DEVICES}/{self.address}/{name}'

    def read_cached(self, name: str) -> str:
        """Return a cached property without a read; empty if it was never read."""
        return str(vars(self).get(name, ''))

    def text(self, name: str) -> str | None:
        """Return the text of one of its files, as ``Host.text``."""
        return self.host.text(self.path(name))

    def number(self, name: str, maximum: int = _MAX_NUMBER) -> int | None:
        """Return the number in one of its files, as ``Host.number``."""
        return self.host.number(self.path(name), maximum)

    def names(self, name: str = '') -> tuple[str, ...]:
        """Return the names in one of its directories, as ``Host.names``."""
        return self.host.names(self.path(name))

    @cached_property
    def vendor(self) -> str:
        """The vendor id, four hex digits; empty if unreadable."""
        return self._hex('vendor', 4)

    @cached_property
    def device(self) -> str:
        """The device id, four hex digits; empty if unreadable."""
        return self._hex('device', 4)

    @cached_property
    def subsystem(self) -> str:
        """The ``vendor:device`` ids of the board, possibly of another vendor."""
        ids = (self._hex('subsystem_vendor', 4), self._hex('subsystem_device', 4))
        return ':'.join(ids) if all(ids) else ''

    @cached_property
    def pci_class(self) -> str:
        """The class code, six hex digits: base, sub-class, programming interface."""
        return self._hex('class', 6)

    @property
    def ids(self) -> str:
        """The ``vendor:device`` ids."""
        return f'{self.vendor}:{self.device}'

    @cached_property
    def driver(self) -> str | None:
        """The kernel driver; None if the function is not bound."""
        return self.host.target(self.path('driver'))

    @property
    def has_guest_driver(self) -> bool:
        """The function is bound to vfio-pci or to another variant of vfio."""
        return 'vfio' in str(self.driver)

    @property
    def has_host_driver(self) -> bool:
        """The function is bound to a driver that does not keep it for guests."""
        is_bound = self.driver is not None and not self.has_guest_driver
        return is_bound and self.driver != _STUB

    @cached_property
    def physfn(self) -> str | None:
        """The address of the physical function; None if this is not a VF."""
        return pci_address(self.host.target(self.path('physfn')) or '')

    @cached_property
    def is_virtual(self) -> bool:
        """The function is a virtual function."""
        # The kernel adds the link shortly after the function. The config space of a VF
        # has no ids from the start (PCI SR-IOV specification).
        return self.physfn is not None or (
            self._header[:4] == b'\xff' * 4 and not self.is_lost
        )

    @cached_property
    def virtfns(self) -> tuple[str, ...]:
        """The addresses of the enabled virtual functions, in order of their numbers."""
        # Sorted as text, virtfn10 would come before virtfn2.
        numbered = sorted(
            (int(match[1]), name)
            for name in self.names()
            if (match := _VIRTUAL.fullmatch(name))
        )
        targets = (self.host.target(self.path(name)) for _, name in numbered)
        return tuple(filter(None, (pci_address(target or '') for target in targets)))

    @cached_property
    def iommu_group(self) -> str | None:
        """The IOMMU group; None if the IOMMU is off or ignores the function."""
        return self.host.target(self.path('iommu_group'))

    @cached_property
    def group_members(self) -> tuple[str, ...]:
        """The addresses of all functions in the IOMMU group, this one included."""
        names = self.names('iommu_group/devices')
        return tuple(filter(None, (pci_address(name) for name in names)))

    @cached_property
    def siblings(self) -> tuple['PciFunction', ...]:
        """The other functions of the slot, virtual functions included."""
        slot = self.address.rpartition('.')[0]
        return tuple(
            function
            for function in self.host.pci_functions()
            if function.address.rpartition('.')[0] == slot and function != self
        )

    @cached_property
    def is_boot_vga(self) -> bool:
        """The firmware used the function as the console of the host."""
        return self.text('boot_vga') == '1'

    @cached_property
    def numa_node(self) -> int | None:
        """The NUMA node; None if the platform has none (the kernel writes -1)."""
        node = self.number('numa_node', _MAX_NUMA_NODE)
        return None if node is None or node < 0 else node

    @cached_property
    def bridges(self) -> tuple[str, ...]:
        """The addresses of the bridges above the function, the root port first.

        The kernel nests the directories of devices in the order of the buses.
        """
        names = self.host.ancestors(self.path(''))
        return tuple(filter(None, (pci_address(name) for name in names)))

    @cached_property
    def is_resettable(self) -> bool:
        """The kernel can reset the function between two guests."""
        # reset_method exists since kernel 5.15; older kernels have only `reset`.
        return self.text('reset_method') is not None or self.host.has(
            self.path('reset')
        )

    @cached_property
    def is_lost(self) -> bool:
        """The device fell off the bus: its config space reads all ones.

        sysfs still shows the cached ids of such a device.
        """
        # Check the whole header: the ids of a working VF read all ones, too.
        return bool(self._header) and not self._header.strip(b'\xff')

    @property
    def is_present(self) -> bool:
        """The kernel lists the function now. Not cached."""
        return self.host.has(self.path(''))

    @cached_property
    def is_suspended(self) -> bool:
        """Runtime power management has suspended the function.

        A read of its config space or of its link state would wake it up.
        """
        return self.text('power/runtime_status') == 'suspended'

    @cached_property
    def _header(self) -> bytes:
        if self.is_suspended:
            return b''
        return self.host.raw(self.path('config'), _CONFIG_HEADER) or b''

    def _hex(self, name: str, digits: int) -> str:
        text = (self.text(name) or '').removeprefix('0x').lower()
        return text if re.fullmatch(f'[0-9a-f]{{{digits}}}', text) else ''
