# SPDX-License-Identifier: Apache-2.0
"""Inspur FPGA cards. There is no known tool that loads bitstreams into them."""

from collections.abc import Mapping
from typing import ClassVar

from cyborg_lite.drivers.fpga.driver import FpgaDriver


class InspurFpga(FpgaDriver):
    """Driver for Inspur FPGA cards, offered as a whole."""

    NAME: ClassVar[str] = 'inspur_fpga_driver'
    VENDOR: ClassVar[str] = '1bd4'
    VENDOR_NAME: ClassVar[str] = 'INSPUR'
    MODELS: ClassVar[Mapping[str, str]] = {'a115': 'F10A'}
