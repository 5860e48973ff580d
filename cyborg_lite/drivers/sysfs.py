# SPDX-License-Identifier: Apache-2.0
"""The one door to the host: what drivers read, they read through here.

Files of the kernel come and go while they are looked at. A read that fails, for
whatever reason, answers None, and costs nothing else.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from cyborg_lite.drivers.kernel import Kernel, PrivilegedKernel

_ADDRESS: Final = re.compile(r'0*([0-9a-f]{4,}):([0-9a-f]{2}):([01][0-9a-f])\.([0-7])')
_VIRTUAL: Final = re.compile(r'virtfn(\d+)')
_LARGEST_FILE: Final = 1 << 20  # bytes; sysfs itself shows 4 KiB at most
_CONFIG_HEADER: Final = 64  # bytes; as much of it as everybody may read
_DEVICES: Final = 'sys/bus/pci/devices'


def pci_address(text: str) -> str | None:
    """The address as sysfs spells it: lower case, a domain of four digits or more.

    Other tools print eight digits and capitals, and the domains behind Intel VMD
    have five. None: this is no PCI address.
    """
    found = _ADDRESS.fullmatch(text.strip().lower())
    return None if found is None else '{}:{}:{}.{}'.format(*found.groups())


@dataclass(frozen=True)
class Host:
    """A host by the name that Placement knows, and the directory its files are in.

    Every path is relative to that root, as in ``sys/bus/pci/devices``, and nothing
    outside it is read, wherever a link may point.
    """

    name: str
    root: Path = Path('/')
    kernel: Kernel = field(default_factory=PrivilegedKernel, compare=False, repr=False)
    """Who makes changes; drivers that do use a ``Writer`` over it."""

    def raw(self, path: str, size: int = _LARGEST_FILE) -> bytes | None:
        """The first ``size`` bytes of a file; None: it cannot be read."""
        where = self._inside(path)
        if where is None:
            return None
        try:
            with open(where, 'rb', buffering=0) as file:
                return file.read(size)
        except OSError:
            return None

    def text(self, path: str) -> str | None:
        """What a file says, without the space around it; None: it says nothing."""
        try:
            return (self.raw(path) or b'').decode().strip() or None
        except UnicodeDecodeError:
            return None

    def number(self, path: str) -> int | None:
        """A number, decimal or with 0x; None: there is none."""
        try:
            return int(self.text(path) or '', 0)
        except ValueError:
            return None

    def names(self, path: str) -> tuple[str, ...]:
        """What a directory holds, sorted; nothing if there is no such directory."""
        where = self._inside(path)
        try:
            return () if where is None else tuple(sorted(os.listdir(where)))
        except OSError:
            return ()

    def target(self, path: str) -> str | None:
        """The name of what a link points at; None: there is no such link."""
        where = self._inside(path)
        return os.path.basename(where) if where and self.has(path) else None

    def has(self, path: str) -> bool:
        """Whether there is such a file, directory or link to one."""
        where = self._inside(path)
        return where is not None and os.path.exists(where)

    @property
    def boot_id(self) -> str:
        """Another one after each boot; empty where the host does not say."""
        return self.text('proc/sys/kernel/random/boot_id') or ''

    def pci_functions(self) -> Iterator['PciFunction']:
        """All that there are, by address; bridges too."""
        for name in self.names(_DEVICES):
            address = pci_address(name)
            if address is not None:
                yield PciFunction(self, address)

    def _inside(self, path: str) -> str | None:
        root = os.path.realpath(self.root)
        try:
            where = os.path.realpath(os.path.join(root, path))
        except OSError:
            return None  # a link on the way was there a moment ago
        return where if os.path.commonpath((root, where)) == root else None


@dataclass(frozen=True)
class PciFunction:
    """What sysfs says of one PCI function.

    Each fact is read when it is first asked for and stays as it was, so that one
    scan does not contradict itself; the next scan makes new ones.
    """

    host: Host
    address: str

    def path(self, name: str) -> str:
        """Of one of its files, for the methods of the host."""
        return f'{_DEVICES}/{self.address}/{name}'

    def text(self, name: str) -> str | None:
        return self.host.text(self.path(name))

    def number(self, name: str) -> int | None:
        return self.host.number(self.path(name))

    def names(self, name: str = '') -> tuple[str, ...]:
        return self.host.names(self.path(name))

    @cached_property
    def vendor(self) -> str:
        """Four hex digits; empty where they cannot be read."""
        return self._hex('vendor', 4)

    @cached_property
    def device(self) -> str:
        return self._hex('device', 4)

    @cached_property
    def subsystem(self) -> str:
        """``vendor:device`` of the board, which another company may have made."""
        parts = (self._hex('subsystem_vendor', 4), self._hex('subsystem_device', 4))
        return ':'.join(parts) if all(parts) else ''

    @cached_property
    def pci_class(self) -> str:
        """Six hex digits: base, sub-class, programming interface."""
        return self._hex('class', 6)

    @property
    def ids(self) -> str:
        return f'{self.vendor}:{self.device}'

    @cached_property
    def driver(self) -> str | None:
        """Of the host's kernel; None: nothing is bound to it."""
        return self.host.target(self.path('driver'))

    @property
    def guest_driver(self) -> bool:
        """Whether it is bound to a driver that hands it to guests, vfio-pci or such."""
        return 'vfio' in str(self.driver)

    @cached_property
    def physfn(self) -> str | None:
        """Address of the physical function; None: this is not a virtual one."""
        return pci_address(self.host.target(self.path('physfn')) or '')

    @cached_property
    def virtual(self) -> bool:
        # The link comes a moment after the function; its config space has no ids of
        # its own from the start.
        return self.physfn is not None or (self._ids_missing and not self.lost)

    @cached_property
    def virtfns(self) -> tuple[str, ...]:
        """Addresses of the virtual functions that are enabled, in their order."""
        # By number: as text virtfn10 would come before virtfn2.
        numbered = sorted(
            (int(found[1]), name)
            for name in self.names()
            if (found := _VIRTUAL.fullmatch(name))
        )
        targets = (self.host.target(self.path(name)) for _, name in numbered)
        return tuple(filter(None, (pci_address(target or '') for target in targets)))

    @cached_property
    def iommu_group(self) -> str | None:
        """None: the IOMMU is off, or does not cover this function."""
        return self.host.target(self.path('iommu_group'))

    @cached_property
    def group_members(self) -> tuple[str, ...]:
        """Addresses of all functions of its IOMMU group, its own among them."""
        names = self.names('iommu_group/devices')
        return tuple(filter(None, (pci_address(name) for name in names)))

    @cached_property
    def siblings(self) -> tuple['PciFunction', ...]:
        """The other functions of its slot, virtual ones among them."""
        slot = self.address.rpartition('.')[0]
        return tuple(
            other
            for other in self.host.pci_functions()
            if other.address.rpartition('.')[0] == slot and other != self
        )

    @cached_property
    def boot_vga(self) -> bool:
        return self.text('boot_vga') == '1'

    @cached_property
    def numa_node(self) -> int | None:
        """None: the platform does not say (the kernel writes -1)."""
        node = self.number('numa_node')
        return None if node is None or node < 0 else node

    @cached_property
    def resettable(self) -> bool:
        """Whether the kernel can reset it between two guests."""
        # reset_method came with kernel 5.15; before, the file to write to was all.
        return self.text('reset_method') is not None or self.host.has(
            self.path('reset')
        )

    @cached_property
    def lost(self) -> bool:
        """Fell off the bus: sysfs still shows its ids, but it answers all ones."""
        # The whole header: the ids alone read all ones on a healthy VF too.
        return bool(self._header) and not self._header.strip(b'\xff')

    @property
    def present(self) -> bool:
        """Whether the kernel lists it at this moment."""
        return self.host.has(self.path(''))

    @cached_property
    def suspended(self) -> bool:
        """Asleep: to read its config space or its link would wake it up."""
        return self.text('power/runtime_status') == 'suspended'

    @property
    def _ids_missing(self) -> bool:
        return self._header[:4] == b'\xff' * 4

    @cached_property
    def _header(self) -> bytes:
        if self.suspended:
            return b''
        return self.host.raw(self.path('config'), _CONFIG_HEADER) or b''

    def _hex(self, name: str, digits: int) -> str:
        text = (self.text(name) or '').removeprefix('0x').lower()
        return text if re.fullmatch(f'[0-9a-f]{{{digits}}}', text) else ''
