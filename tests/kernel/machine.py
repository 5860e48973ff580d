# SPDX-License-Identifier: Apache-2.0
"""Virtual machine with an IOMMU and NVMe drives, and a way to run commands in it."""

import base64
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from tests.kernel.image import Image

SYSTEM: Final = 'SYSTEM'
SHARED: Final = 'SHARED'
DRIVES: Final = ('FREE', 'LVM', 'RAID', 'CRYPT', 'MOUNTED')
"""Serial numbers: the system disk, the drive with virtual functions, the others."""

_DRIVE_SIZE: Final = 64 << 20  # bytes
# Seconds. A start in software emulation takes 40 on a quiet machine.
_LIMIT: Final = 400.0
_PAUSE: Final = 0.3
# A processor with KVM may still not be able to run a kernel in it.
_ACCELERATOR: Final = os.environ.get('CYBORG_LITE_TEST_QEMU', 'tcg')


_Answer = TypeVar('_Answer')


class CommandFailed(AssertionError):
    """A command in the machine failed."""


@dataclass(frozen=True)
class Result:
    """Exit status and output, standard error included, of a command."""

    status: int
    output: str


class _Channel:
    """Connection to a socket of QEMU that answers JSON with JSON."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(5)
        try:
            self._socket.connect(str(path))
        except OSError:
            self._socket.close()
            raise
        self._lines = self._socket.makefile('r', errors='replace')

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    def call(self, method: str, **arguments: object) -> Any:
        """Return the result of a method; OSError if the answer is late."""
        text = json.dumps({'execute': method, 'arguments': arguments})
        self._socket.sendall(text.encode() + b'\n')
        while True:
            answer = json.loads(self._lines.readline() or 'null')
            if answer is None:
                raise OSError('the connection is closed')
            if 'error' in answer:
                raise CommandFailed(f'{method}: {answer["error"]["desc"]}')
            if 'return' in answer:
                return answer['return']


class Machine:
    """Process of QEMU."""

    def __init__(self, image: Image, directory: Path) -> None:
        self._image = image
        self._directory = directory
        self.console = directory / 'console.log'
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        log = (self._directory / 'qemu.log').open('wb')
        with log:
            self._process = subprocess.Popen(
                self._list_arguments(), stdout=log, stderr=log
            )
        self.wait_until_up()
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def wait_until_up(self) -> None:
        """Wait until the machine runs commands."""
        self.until(lambda: self.execute('systemctl is-system-running --wait').output)

    def power_off_and_on(self) -> None:
        """Reset the machine as a loss of power does: what is not synced is lost."""
        self.monitor('system_reset')
        self.wait_until_up()

    def monitor(self, command: str) -> str:
        """Run a command of the human monitor of QEMU and return its output."""
        channel = _Channel(self._directory / 'monitor')
        try:
            channel.call('qmp_capabilities')
            result = channel.call('human-monitor-command', **{'command-line': command})
        finally:
            channel.close()
        return str(result)

    def execute(self, script: str) -> Result:
        """Run a shell script as root. OSError if the machine does not answer."""
        channel = _Channel(self._directory / 'commands')
        try:
            channel.call('guest-sync', id=time.monotonic_ns() % (1 << 31))
            started = channel.call(
                'guest-exec',
                path='/bin/bash',
                arg=['-c', f'exec 2>&1\n{script}'],
                **{'capture-output': True},
            )
            deadline = time.monotonic() + _LIMIT
            while True:
                state = channel.call('guest-exec-status', pid=started['pid'])
                if state['exited']:
                    break
                assert time.monotonic() < deadline, f'still running: {script}'
                time.sleep(_PAUSE)
        finally:
            channel.close()
        output = base64.b64decode(state.get('out-data', ''))
        return Result(
            state.get('exitcode', -1), output.decode(errors='replace').strip()
        )

    def run(self, script: str) -> str:
        """Run a shell script as root and return its output."""
        result = self.execute(f'set -e\n{script}')
        if result.status:
            raise CommandFailed(f'{script}: {result.status}: {result.output}')
        return result.output

    def until(self, question: Callable[[], _Answer], description: str = '') -> _Answer:
        """Wait until a question has a true answer; the machine may be restarting."""
        deadline = time.monotonic() + _LIMIT
        while True:
            error: Exception | None = None
            try:
                if answer := question():
                    return answer
            except (OSError, ValueError, CommandFailed) as failure:
                error = failure
            assert self._process is None or self._process.poll() is None, self._log()
            assert time.monotonic() < deadline, f'{description} {error} {self._log()}'
            time.sleep(_PAUSE)

    def _log(self) -> str:
        logs = (self._directory / 'qemu.log', self.console)
        return '\n'.join(log.read_text(errors='replace')[-3000:] for log in logs)

    def _list_arguments(self) -> Sequence[str]:
        """Return the command line. Each drive is below a root port of its own."""
        path = str(self._directory)
        image = self._image
        command_line = 'root=LABEL=cyborg-root rw console=ttyS0 intel_iommu=on'
        arguments = [
            'qemu-system-x86_64', '-nodefaults', '-no-user-config', '-display', 'none',
            '-machine', f'q35,accel={_ACCELERATOR},kernel-irqchip=split',
            '-cpu', 'max', '-m', '1536', '-smp', '2',
            '-device', 'intel-iommu,intremap=on,caching-mode=on',
            '-kernel', str(image.kernel), '-initrd', str(image.initial_ram_disk),
            '-append', command_line,
            '-serial', f'file:{self.console}',
            '-qmp', f'unix:{path}/monitor,server=on,wait=off',
            '-chardev', f'socket,path={path}/commands,server=on,wait=off,id=commands',
            '-device', 'virtio-serial-pci',
            '-device', 'virtserialport,chardev=commands,name=org.qemu.guest_agent.0',
            '-netdev', 'user,id=net', '-device', 'virtio-net-pci,netdev=net',
            # The image has mediated devices for it.
            '-device', 'edu',
        ]  # fmt: skip
        for number, serial in enumerate((SYSTEM, *DRIVES)):
            file, options = self._image.disk, ',snapshot=on'
            if serial != SYSTEM:
                file, options = self._create_drive(serial), ''
            arguments += [
                '-device', f'pcie-root-port,id=port{number},chassis={number}',
                '-drive', f'file={file},if=none,id={serial},format=raw{options}',
                '-device', f'nvme,id=nvme-{serial},bus=port{number},serial={serial},'
                f'drive={serial}',
            ]  # fmt: skip
        file = self._create_drive(SHARED)
        functions = (
            'sriov_max_vfs=4,sriov_vq_flexible=8,sriov_vi_flexible=4,'
            'max_ioqpairs=18,msix_qsize=19'
        )
        return [
            *arguments,
            '-device', 'pcie-root-port,id=port-shared,chassis=30',
            '-device', 'nvme-subsys,id=subsystem',
            '-device', f'nvme,id=nvme-{SHARED},bus=port-shared,serial={SHARED},'
            f'subsys=subsystem,{functions}',
            '-drive', f'file={file},if=none,id={SHARED},format=raw',
            '-device', f'nvme-ns,drive={SHARED},nsid=1',
        ]  # fmt: skip

    def _create_drive(self, serial: str) -> Path:
        file = self._directory / f'{serial}.raw'
        with file.open('wb') as empty:
            empty.truncate(_DRIVE_SIZE)
        return file
