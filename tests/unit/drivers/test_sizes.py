# SPDX-License-Identifier: Apache-2.0
"""Sizes of drivers: a driver for a common card is data and a few methods."""

import pytest

from cyborg_lite.drivers.ai.chips import Ascend, Gaudi
from cyborg_lite.drivers.fpga.inspur import InspurFpga
from cyborg_lite.drivers.gpus.amd import AmdGpu
from cyborg_lite.drivers.gpus.intel import IntelGpu
from cyborg_lite.drivers.gpus.sriov import SriovGpu
from cyborg_lite.drivers.pci.driver import PciDriver
from cyborg_lite.drivers.qat.driver import IntelQat
from tests.support.class_sizes import count_class_lines

MAX_PLAIN = 15
MAX_SRIOV = 40


@pytest.mark.parametrize('driver', [Ascend, Gaudi, InspurFpga])
def test_plain_driver_has_at_most_15_lines(driver: type[PciDriver]) -> None:
    assert count_class_lines(driver) <= MAX_PLAIN


@pytest.mark.parametrize('driver', [AmdGpu, IntelGpu, IntelQat, SriovGpu])
def test_sriov_driver_has_at_most_40_lines(driver: type[PciDriver]) -> None:
    assert count_class_lines(driver) <= MAX_SRIOV
