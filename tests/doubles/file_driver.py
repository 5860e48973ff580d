# SPDX-License-Identifier: Apache-2.0
"""Driver whose prepared handles are files, for tests of the conformance checks."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from oslo_config import cfg

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Deployable,
    Device,
    DiscoveryResult,
    HandleType,
)
from cyborg_lite.testing.driver_checks import Bench

ADDRESS = '0000:5e:00.0'
INFO = {'domain': '0000', 'bus': '5e', 'device': '00', 'function': '0'}
_DIRECTORY = 'prepared'


class FileKernel:
    """Kernel that changes files; an empty text removes the file."""

    def write(self, root: Path, path: str, text: str) -> None:
        if text:
            (root / path).write_text(text)
        else:
            (root / path).unlink(missing_ok=True)

    def run(self, root: Path, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
        raise FileNotFoundError(tool)

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        raise FileNotFoundError(command[0])

    def holders(self, root: Path, files: Sequence[str]) -> list[int]:
        return []


class FileDriver:
    """Correct driver of one card with two handles."""

    NAME: ClassVar[str] = 'file_driver'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()

    # Any: driver options have various types.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self.host = host

    def discover(self) -> Iterator[DiscoveryResult]:
        if not self.host.has(_DIRECTORY):
            return
        handles = tuple(
            AttachHandle(f'{ADDRESS}/{n}', HandleType.PCI, INFO, needs_host=True)
            for n in range(2)
        )
        prepared = ' '.join(sorted(self.host.names(_DIRECTORY)))
        root = Deployable(
            f'{self.host.name}_{ADDRESS}',
            resource_class='FPGA',
            traits=('OWNER_CYBORG',),
            total=2,
            handles=handles,
            attributes={'prepared': prepared},
        )
        device = Device('FPGA', '8086', 'File', self.NAME, ADDRESS, ADDRESS, root)
        yield DiscoveryResult(
            ADDRESS, '8086:09c4', '120000', self.NAME, 'whole card', device
        )

    def prepare(self, handle: AllocatedHandle) -> None:
        self.write_file(handle, handle.arq_uuid)

    def release(self, handle: AllocatedHandle) -> None:
        self.write_file(handle, '')

    def write_file(self, handle: AllocatedHandle, text: str) -> None:
        path = f'{_DIRECTORY}/{handle.key.rpartition("/")[2]}'
        self.host.kernel.write(self.host.root, path, text)


def build_bench(driver: type[FileDriver] = FileDriver) -> Bench:
    def build(root: Path) -> FileKernel:
        (root / _DIRECTORY).mkdir()
        return FileKernel()

    return Bench(lambda host: driver(host, {}), build)
