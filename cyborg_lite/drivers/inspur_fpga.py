# SPDX-License-Identifier: Apache-2.0
"""Inspur FPGA cards, given away as they are: no tool is known that loads them."""

from collections.abc import Mapping
from typing import ClassVar

from cyborg_lite.drivers.fpga import FpgaDriver


class InspurFpga(FpgaDriver):
    """Whole cards."""

    NAME: ClassVar[str] = 'inspur_fpga_driver'
    VENDOR: ClassVar[str] = '1bd4'
    VENDOR_NAME: ClassVar[str] = 'INSPUR'
    MODELS: ClassVar[Mapping[str, str]] = {'a115': 'F10A'}
