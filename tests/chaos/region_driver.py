# SPDX-License-Identifier: Apache-2.0
"""Out-of-tree driver of an FPGA whose function is in a file and outlives the agent."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from oslo_config import cfg

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.bitstreams.bitstreams import Bitstream
from cyborg_lite.model.inventory.host_report import Device
from tests.doubles.loadable_driver import LoadableDriver


class RegionDriver(LoadableDriver):
    """Driver whose host must restore the previous function."""

    NAME: ClassVar[str] = 'region_driver'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        cfg.StrOpt('file', default='/nowhere', help='Which function is loaded.'),
    )

    # Any: driver options have various types.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self._file = Path(options['file'])

    def program(self, deployable: str, image: Path, bitstream: Bitstream) -> Device:
        assert image.stat().st_size == bitstream.size
        self._file.write_text(bitstream.function_id)
        return self._device()

    def _device(self) -> Device:
        self._function = self._file.read_text()
        device = super()._device()
        (handle,) = device.root.handles
        handles = (replace(handle, needs_host=True),)
        return replace(device, root=replace(device.root, handles=handles))
