# SPDX-License-Identifier: Apache-2.0
"""Tests of the calls of sriov-manage: arguments, retries and errors."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from cyborg_lite.drivers.host.kernel import Writer
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.nvidia.sriov_manage import SriovManage
from cyborg_lite.errors.drivers import DeviceBusy, ToolMissing
from tests.doubles.file_driver import FileKernel

CARD = '0000:82:00.0'


class ToolKernel(FileKernel):
    """Kernel that returns the given results of a tool and records its calls."""

    def __init__(self, *results: tuple[int, str] | OSError) -> None:
        self.results = list(results)
        self.commands: list[list[str]] = []

    def run(self, root: Path, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
        self.commands.append([tool.rpartition('/')[2], *arguments])
        result = self.results.pop(0)
        if isinstance(result, OSError):
            raise result
        return result


@pytest.fixture
def card(tmp_path: Path) -> PciFunction:
    return PciFunction(Host('compute-1', tmp_path), CARD)


def build_tool(kernel: ToolKernel, root: Path) -> SriovManage:
    return SriovManage(Writer(root, kernel, 30))


@pytest.mark.parametrize(
    ('output', 'reason'),
    [('first\nlast line\n', 'sriov-manage -e failed: last line'), ('', 'no output')],
)
def test_enable_other_failure_raises_without_retry(
    card: PciFunction, tmp_path: Path, output: str, reason: str
) -> None:
    kernel = ToolKernel((2, output))
    with pytest.raises(DeviceBusy, match=reason):
        build_tool(kernel, tmp_path).enable(card)
    assert len(kernel.commands) == 1


def test_enable_names_missing_tool(card: PciFunction, tmp_path: Path) -> None:
    kernel = ToolKernel(FileNotFoundError(2, 'No such file or directory'))
    with pytest.raises(ToolMissing):
        build_tool(kernel, tmp_path).enable(card)
