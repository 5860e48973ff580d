# SPDX-License-Identifier: Apache-2.0
"""The tools nvme and blkdiscard, emulated for one drive. The outputs are those of
nvme-cli 2.8 and util-linux 2.38.
"""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from cyborg_lite.drivers.host.tools import ToolResult
from tests.hosts.kernel import FakeKernel

CAPACITY: Final = 4_000_787_030_016  # bytes
ERASES = ('sanitize', 'format', '--zeroout')


class NvmeTools:
    """Emulation of both tools; a sanitize ends after ``polls`` reads of its log."""

    def __init__(self, sanicap: int = 0, oacs: int = 0, fna: int = 0) -> None:
        self.identity = {
            **{'sanicap': sanicap, 'oacs': oacs, 'fna': fna},
            **{'cntlid': 1, 'nn': 32, 'tnvmcap': CAPACITY},
        }
        self.polls = 2
        self.last_status = 1  # of SSTAT, at the end of a sanitize
        self.sanitizing = 0  # remaining reads of the log until the end
        self.failures: dict[str, str] = {}  # by erase: the output of the failure
        self.commands: list[tuple[str, ...]] = []

    def erases(self) -> list[str]:
        """Return the commands that erased something."""
        return [' '.join(item) for item in self.commands if item[1] in ERASES]

    def __call__(self, command: Sequence[str], timeout: float) -> ToolResult:
        self.commands.append(tuple(command))
        operation = command[1]
        if operation in self.failures:
            return ToolResult(1, self.failures[operation])
        match operation:
            case 'version':
                return ToolResult(
                    0, 'nvme version 2.8 (git 2.8)\nlibnvme version 1.8\n'
                )
            case '--version':
                return ToolResult(0, 'blkdiscard from util-linux 2.38.1\n')
            case 'id-ctrl':
                fields = ',\n'.join(f'  "{k}":{v}' for k, v in self.identity.items())
                return ToolResult(0, f'{{\n  "vid":32902,\n{fields}\n}}\n')
            case 'sanitize':
                self.sanitizing = self.polls
            case 'sanitize-log':
                return ToolResult(0, self._format_log())
        return ToolResult(0)

    def _format_log(self) -> str:
        running = self.sanitizing > 0
        self.sanitizing = max(0, self.sanitizing - 1)
        status = 2 if running else self.last_status
        return (
            'Sanitize Progress                      (SPROG) :  65535\n'
            f'Sanitize Status                        (SSTAT) :  {0x100 | status:#x}\n'
            'Sanitize Command Dword 10 Information (SCDW10) :  0x4\n'
        )


class Namespaces:
    """Namespace management of the drives of a host, whose namespaces are in its tree.

    The outputs are those of nvme-cli 2.8.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._allocated: dict[str, dict[int, int]] = {}  # sizes in blocks of 512
        # Attached namespaces that the kernel does not show yet.
        self.list_unseen: Callable[[], list[int]] = list

    def run(self, command: Sequence[str]) -> str | None:
        """Return the output of a command; None: it manages no namespaces."""
        operation, controller, *options = [*command[1:], '', '']
        values = dict(re.findall(r'--([\w-]+)=(\w+)', ' '.join(options)))
        name = Path(controller).name
        match operation:
            case 'id-ns':
                formats = [{'ms': 8, 'ds': 9}, {'ms': 0, 'ds': 9}]
                return json.dumps({'nsze': 0, 'lbafs': formats})
            case 'list-ns':
                numbers = self._list(name, attached='--all' not in options)
                lines = (f'[{i:4}]:{n:#x}' for i, n in enumerate(numbers))
                return '\n'.join(lines)
            case 'create-ns':
                number = self._create(name, int(values['nsze']))
                return f'create-ns: Success, created nsid:{number}'
            case 'delete-ns':
                self._delete(name, int(values['namespace-id']))
            case 'attach-ns':
                self._attach(name, int(values['namespace-id']))
        is_known = operation in ('delete-ns', 'attach-ns', 'ns-rescan')
        return f'{operation}: Success' if is_known else None

    def _create(self, name: str, blocks: int) -> int:
        numbers = self._list(name, attached=False)
        number = next(n for n in range(1, 99) if n not in numbers)
        self._allocated.setdefault(name, {})[number] = blocks
        return number

    def _find(self, name: str) -> Path:
        (path,) = self._root.glob(f'sys/bus/pci/devices/*/nvme/{name}')
        return path.resolve()

    def _list(self, name: str, *, attached: bool) -> list[int]:
        directories = self._find(name).glob(f'{name}n*')
        numbers = {int(path.name.removeprefix(f'{name}n')) for path in directories}
        numbers |= set(self.list_unseen())
        if not attached:
            numbers |= self._allocated.get(name, {}).keys()
        return sorted(numbers)

    def _attach(self, name: str, number: int) -> None:
        directory = self._find(name) / f'{name}n{number}'
        (directory / 'holders').mkdir(parents=True)
        (directory / 'size').write_text(f'{self._allocated[name].pop(number)}\n')
        link = self._root / 'sys/block' / directory.name
        link.unlink(missing_ok=True)
        link.symlink_to(directory)

    def _delete(self, name: str, number: int) -> None:
        self._allocated.get(name, {}).pop(number, None)
        directory = self._find(name) / f'{name}n{number}'
        if directory.exists():
            shutil.rmtree(directory)
        for parent in ('sys/block', 'sys/class/block'):
            (self._root / parent / directory.name).unlink(missing_ok=True)


class NvmeKernel(FakeKernel):
    """Emulated kernel of a host with drives, which the tools can erase."""

    def __init__(self, host: str, root: Path, *limits: int) -> None:
        """Build the host.

        :param limits: those of ``FakeKernel``
        """
        super().__init__(host, root, *limits)
        self.tools = NvmeTools(sanicap=1, oacs=8)
        self.tools.polls = 0

        self.namespaces = Namespaces(root)

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        output = self.namespaces.run(command)
        if output is not None:
            self.tools.commands.append(tuple(command))
            return 0, output
        result = self.tools(command, seconds)
        return result.status, result.output
