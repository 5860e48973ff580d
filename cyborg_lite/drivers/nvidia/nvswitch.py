# SPDX-License-Identifier: Apache-2.0
"""NVSwitches, which connect the SXM cards of an HGX or DGX board by NVLink.

Fabric Manager divides the cards into partitions. A guest can use NVLink only with
cards of one active partition. No file in sysfs shows the partitions, so the driver
shows the fabric only.
"""

from dataclasses import dataclass
from typing import Final

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.host.timed_scan import TimedScan
from cyborg_lite.drivers.nvidia.models import NVSWITCHES, may_have_nvlink_fabric
from cyborg_lite.drivers.pci.functions import custom_name

TRAIT: Final = custom_name('NVIDIA', 'NVSWITCH')
# The name of the attribute with the number of NVSwitches of the host.
ATTRIBUTE: Final = 'nvswitches'
SWITCH_REASON: Final = (
    'NVSwitch: it stays with the host, because it carries the NVLinks of all cards'
)

_VENDOR: Final = '10de'
_CLASS: Final = '0680'  # other bridge
_DRIVER: Final = 'nvidia-nvswitch'


@dataclass(frozen=True, slots=True)
class Fabric:
    """The NVSwitches of a host."""

    switches: int = 0
    active: int = 0  # switches that are bound to their driver

    def has_card(self, device: str) -> bool:
        """Return True if a card with this device id may be behind the switches."""
        return self.switches > 0 and may_have_nvlink_fabric(device)

    def __str__(self) -> str:
        text = f'behind {self.switches} NVSwitches'
        if self.active < self.switches:
            text = f'{text}, of which {self.active} have their driver'
        return f'{text}; NVLink needs an active Fabric Manager partition'


def is_switch(function: PciFunction) -> bool:
    """Return True if a function is an NVSwitch."""
    if function.vendor != _VENDOR or not function.pci_class.startswith(_CLASS):
        return False
    return function.driver == _DRIVER or function.device in NVSWITCHES


def read_fabric(host: Host, scan: TimedScan) -> Fabric:
    """Return the NVSwitches of a host. A function that hangs is left out."""
    readings = scan.read(list(host.pci_functions()), is_switch)
    switches = [reading.function for reading in readings if reading.value]
    active = sum(function.driver == _DRIVER for function in switches)
    return Fabric(len(switches), active)
