# SPDX-License-Identifier: Apache-2.0
"""Driver of one device whose handles are cleaned in two steps."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.cleaning import CleanStep
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import CleaningPolicy, DiscoveryResult
from tests.doubles.file_driver import FileDriver

ERASED: Final = 'prepared/erased'  # file that the steps of a clean write


class Declaring(FileDriver):
    """Driver with a cleaning policy, but without clean steps."""

    def discover(self) -> Iterator[DiscoveryResult]:
        for result in super().discover():
            device = result.device
            assert device is not None
            handles = tuple(
                replace(handle, cleaning=CleaningPolicy.AFTER_USE)
                for handle in device.root.handles
            )
            # The files of a clean are not part of the device.
            root = replace(device.root, handles=handles, attributes={})
            yield replace(result, device=replace(device, root=root))


class Cleaning(Declaring):
    """Correct driver with two steps, each of which changes one file."""

    def list_clean_steps(self, handle: AllocatedHandle) -> Sequence[CleanStep]:
        return CleanStep('erase', 'all data'), CleanStep('verify', 'the mark')

    def run_clean_step(
        self, handle: AllocatedHandle, name: str, abort: threading.Event
    ) -> str:
        try:
            text = 'x' if name == 'erase' else ''
            self.host.kernel.write(self.host.root, ERASED, text)
        except OSError as error:
            raise DriverError(reason=str(error)) from None
        return 'file 1.0'
