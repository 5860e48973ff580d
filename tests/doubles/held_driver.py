# SPDX-License-Identifier: Apache-2.0
"""Operated card that can be programmed, and whose work a test holds.

While the folder has the file ``held``, each work makes a file ``reached`` and waits.
With the file ``refuse-program`` a load fails.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

from oslo_config import cfg

from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.bitstreams.bitstreams import Bitstream
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import Device
from tests.builders.bitstream_files import ARRIA10_REGION
from tests.doubles.operated_driver import OperatedDriver

_PAUSE: Final = 0.02  # seconds between two looks at the file
_ATTRIBUTES: Final = {
    bitstreams.VENDOR: 'intel',
    bitstreams.BOARD: 'PAC_ARRIA10',
    bitstreams.SHELL: '0x113000200000177',
    bitstreams.REGION: ARRIA10_REGION,
}


class HeldDriver(OperatedDriver):
    """Driver of one card whose unit the host prepares, releases and cleans."""

    NAME: ClassVar[str] = 'held_driver'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        cfg.StrOpt('folder', default='/nowhere', help='Folder of the state.'),
    )

    def _pass(self) -> None:
        while (self._folder / 'held').exists():
            (self._folder / 'reached').touch()
            time.sleep(_PAUSE)

    def set_mode(self, device: Device, mode: str) -> Device:
        self._pass()
        return super().set_mode(device, mode)

    def run_clean_step(
        self, handle: AllocatedHandle, name: str, abort: threading.Event
    ) -> str:
        self._pass()
        return super().run_clean_step(handle, name, abort)

    def prepare(self, handle: AllocatedHandle) -> None:
        self._pass()

    def release(self, handle: AllocatedHandle) -> None:
        self._pass()

    def program(self, deployable: str, image: Path, bitstream: Bitstream) -> Device:
        self._pass()
        if (self._folder / 'refuse-program').exists():
            raise DriverError(reason='The card refuses the image.')
        (self._folder / 'function').write_text(bitstream.function_id)
        return self._device()

    def _device(self) -> Device:
        file = self._folder / 'function'
        function = file.read_text() if file.exists() else '0' * 32
        device = super()._device()
        handles = tuple(replace(item, needs_host=True) for item in device.root.handles)
        attributes = {**_ATTRIBUTES, bitstreams.FUNCTION: function}
        root = replace(device.root, handles=handles, attributes=attributes)
        return replace(device, root=root)
