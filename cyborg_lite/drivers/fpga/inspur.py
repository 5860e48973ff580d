# SPDX-License-Identifier: Apache-2.0
"""Inspur FPGA cards. There is no known tool that loads bitstreams into them."""

from typing import ClassVar

from cyborg_lite.drivers.fpga.driver import FpgaDriver


class InspurFpga(FpgaDriver):
    """Driver for Inspur FPGA cards, offered as a whole."""

    NAME: ClassVar[str] = 'inspur_fpga_driver'
