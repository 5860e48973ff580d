# SPDX-License-Identifier: Apache-2.0
"""Tests of changes to the host: timeouts and translated errors."""

import errno
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from cyborg_lite.drivers.host.kernel import Writer, to_driver_error
from cyborg_lite.errors.drivers import (
    DeviceBusy,
    DeviceGone,
    DeviceHangs,
    DriverError,
    ToolMissing,
)

_CARD = '0000:3b:00.0'
_OTHER = '0000:af:00.0'


class SlowKernel:
    """A kernel in which a write to ``slow`` blocks until ``resume`` is set."""

    def __init__(self) -> None:
        self.resume = threading.Event()
        self.returned = threading.Event()
        self.written: list[str] = []

    def write(self, root: Path, path: str, text: str) -> None:
        if path == 'slow':
            self.resume.wait()
        if path == 'refused':
            raise OSError(errno.EBUSY, 'busy')
        self.written.append(path)

    def run(self, root: Path, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
        if tool == 'missing':
            raise FileNotFoundError(errno.ENOENT, 'missing')
        return 0, ' '.join((tool, *arguments))

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        return 0, ' '.join(command)

    def holders(self, root: Path, files: Sequence[str]) -> list[int]:
        return [len(files)]


@pytest.fixture
def kernel() -> SlowKernel:
    return SlowKernel()


@pytest.fixture
def writer(kernel: SlowKernel, tmp_path: Path) -> Writer:
    return Writer(tmp_path, kernel, seconds=0.2)


def test_writer_returns_kernel_results(writer: Writer) -> None:
    assert writer.run(_CARD, 'tool', '-e') == (0, 'tool -e')
    assert writer.holders(_CARD, ['a', 'b']) == [2]
    with pytest.raises(OSError, match='busy'):
        writer.write(_CARD, 'refused', '1')


def test_writer_without_tool_names_it(writer: Writer) -> None:
    with pytest.raises(ToolMissing, match='missing is not installed'):
        writer.run(_CARD, 'missing')


def test_writer_hung_card_raises_until_return(
    writer: Writer, kernel: SlowKernel
) -> None:
    with pytest.raises(DeviceHangs, match=f'{_CARD} hangs: write to slow'):
        writer.write(_CARD, 'slow', '1')
    with pytest.raises(DeviceHangs):
        writer.write(_CARD, 'quick', '1')
    assert kernel.written == []
    kernel.resume.set()
    while 'slow' not in kernel.written or _hangs(writer):
        pass
    writer.write(_CARD, 'quick', '1')
    assert kernel.written == ['slow', 'quick']


def test_writer_hung_card_does_not_block_others(
    writer: Writer, kernel: SlowKernel
) -> None:
    with pytest.raises(DeviceHangs):
        writer.write(_CARD, 'slow', '1')
    writer.write(_OTHER, 'quick', '1')
    assert kernel.written == ['quick']
    kernel.resume.set()


@pytest.mark.parametrize(
    ('number', 'kind'),
    [
        (errno.EBUSY, DeviceBusy),
        (errno.EPERM, DeviceBusy),
        (errno.ENOSPC, DeviceBusy),
        (errno.ENODEV, DeviceGone),
        (errno.ENOENT, DeviceGone),
        (errno.EIO, DriverError),
    ],
)
def test_to_driver_error_translates_errno(number: int, kind: type[DriverError]) -> None:
    error = to_driver_error(_CARD, 'it cannot be', OSError(number, 'because'))
    assert type(error) is kind
    assert _CARD in error.text


def _hangs(writer: Writer) -> bool:
    try:
        writer.check(_CARD)
    except DeviceHangs:
        return True
    return False
