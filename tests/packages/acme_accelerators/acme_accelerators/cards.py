# SPDX-License-Identifier: Apache-2.0
"""PCI cards: a plain card, a family with virtual functions, and an FPGA card.

The ids are those of cards on the emulated hosts.
"""

from collections.abc import Mapping
from typing import ClassVar

from cyborg_lite.drivers.fpga.xilinx import XilinxFpga
from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.drivers.pci.driver import PciDriver
from cyborg_lite.drivers.pci.functions import custom_name
from cyborg_lite.drivers.pci.shared import SharedPciDriver
from cyborg_lite.model.traits import OWNER_CYBORG


class AcmeCard(PciDriver):
    """Driver for Acme cards, which a guest gets as a whole."""

    NAME: ClassVar[str] = 'acme_card_driver'
    VENDOR: ClassVar[str] = '19e5'
    VENDOR_NAME: ClassVar[str] = 'ACME'
    CLASSES: ClassVar[tuple[str, ...]] = ('1200',)
    DEVICE_TYPE: ClassVar[str] = 'AICHIP'
    RESOURCE_CLASS: ClassVar[str] = 'CUSTOM_ACME'
    HOST_DRIVERS: ClassVar[tuple[str, ...]] = ('devdrv_device_driver',)
    MODELS: ClassVar[Mapping[str, str]] = {'d100': 'Acme 100'}


class AcmeSriov(SharedPciDriver):
    """Driver for Acme cards that are shared as virtual functions."""

    NAME: ClassVar[str] = 'acme_sriov_driver'
    VENDOR: ClassVar[str] = '8086'
    VENDOR_NAME: ClassVar[str] = 'ACME'
    CLASSES: ClassVar[tuple[str, ...]] = ('0380',)
    DEVICE_TYPE: ClassVar[str] = 'AICHIP'
    RESOURCE_CLASS: ClassVar[str] = 'CUSTOM_ACME_VF'
    MODELS: ClassVar[Mapping[str, str]] = {'56c0': 'Acme 200'}

    def shared_traits(self, function: PciFunction) -> tuple[str, ...]:
        """Return the model as trait."""
        return OWNER_CYBORG, custom_name('ACME', function.device, 'VF')

    def find_fault(self, function: PciFunction) -> str | None:
        """Return the state of a card that does not work."""
        state = function.text('acme_state') or 'ok'
        return None if state == 'ok' else f'acme_state is {state}'


class AcmeFpga(XilinxFpga):
    """Driver for Acme boards with an Alveo FPGA and their own loading tool."""

    NAME: ClassVar[str] = 'acme_fpga_driver'
    TOOL: ClassVar[str] = '/opt/acme/bin/load'
    MODELS: ClassVar[Mapping[str, str]] = {'5004': 'Acme 250'}
