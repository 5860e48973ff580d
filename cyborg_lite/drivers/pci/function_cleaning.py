# SPDX-License-Identifier: Apache-2.0
"""Clean steps of any PCI function: a reset, or the erase of an NVMe drive.

A reset clears what the specification of the device says, for example its registers and
queues. The kernel chooses the method (kernel: ABI/testing/sysfs-bus-pci, ``reset``).
"""

from collections.abc import Sequence
from typing import Final

from cyborg_lite.drivers.host import vfio
from cyborg_lite.drivers.host.kernel import Writer
from cyborg_lite.drivers.host.sysfs import PciFunction
from cyborg_lite.drivers.nvme_cleaning import NvmeCleaner
from cyborg_lite.errors.drivers import DeviceGone, DriverError
from cyborg_lite.model.devices.cleaning import CleanStep

_NVME: Final = '010802'  # class code: NVM Express controller
_RESET: Final = CleanStep(
    'reset', 'the state of the function that its reset clears', seconds=1
)


class FunctionCleaner:
    """Resets PCI functions and erases NVMe drives."""

    def __init__(self, writer: Writer, drives: NvmeCleaner) -> None:
        self._writer = writer
        self._drives = drives

    def list_steps(self, function: PciFunction) -> Sequence[CleanStep]:
        """Return the steps for a function; for the errors see ``CleansHandles``."""
        if function.pci_class == _NVME:
            return self._drives.list_steps(function)
        if function.is_present:
            self._check(function)
        return (_RESET,)

    def run_step(self, function: PciFunction, name: str) -> str:
        """Run a step; return the tool with its version, or an empty string.

        A virtual function that was removed after its last use has no state.
        """
        if function.pci_class == _NVME:
            return self._drives.run_step(function, name)
        if not function.is_present:
            return ''
        self._check(function)
        self._writer.set_value(function.address, 'reset', '1', 'it cannot be reset')
        return ''

    def _check(self, function: PciFunction) -> None:
        if function.is_lost:
            raise DeviceGone(address=function.address)
        vfio.check_closed(self._writer, function)
        if not function.is_resettable:
            reason = f'The kernel cannot reset {function.address}.'
            raise DriverError(reason=reason)
