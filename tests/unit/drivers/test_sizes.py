# SPDX-License-Identifier: Apache-2.0
"""Sizes of drivers: a driver for a common card is data and a few methods."""

import ast
import inspect
import textwrap

import pytest

from cyborg_lite.drivers.ai_chips import Ascend
from cyborg_lite.drivers.amd_gpu import AmdGpu
from cyborg_lite.drivers.fpga.inspur import InspurFpga
from cyborg_lite.drivers.gpu_sriov import SriovGpu
from cyborg_lite.drivers.intel_gpu import IntelGpu
from cyborg_lite.drivers.pci import PciDriver

MAX_PLAIN = 15
MAX_SRIOV = 40


def count_lines(driver: type[PciDriver]) -> int:
    """Return the lines of code of a class, without blank lines and docstrings."""
    source = textwrap.dedent(inspect.getsource(driver))
    docstrings = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    return sum(
        bool(text.strip()) and not text.lstrip().startswith('#')
        for number, text in enumerate(source.splitlines(), 1)
        if number not in docstrings
    )


@pytest.mark.parametrize('driver', [Ascend, InspurFpga])
def test_plain_driver_has_at_most_15_lines(driver: type[PciDriver]) -> None:
    assert count_lines(driver) <= MAX_PLAIN


@pytest.mark.parametrize('driver', [AmdGpu, IntelGpu, SriovGpu])
def test_sriov_driver_has_at_most_40_lines(driver: type[PciDriver]) -> None:
    assert count_lines(driver) <= MAX_SRIOV
