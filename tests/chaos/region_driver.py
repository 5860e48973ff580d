# SPDX-License-Identifier: Apache-2.0
"""A driver out of the tree for an FPGA whose function outlives the agent, in a file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from oslo_config import cfg

from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.model.bitstreams import Bitstream
from cyborg_lite.model.inventory import Device
from tests.fakes.loadable_driver import LoadableDriver


class RegionDriver(LoadableDriver):
    """Its host must bring back what was there before."""

    NAME: ClassVar[str] = 'region_driver'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        cfg.StrOpt('file', default='/nowhere', help='Which function is loaded.'),
    )

    # Any: as the options of drivers are.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self._file = Path(options['file'])

    def program(self, deployable: str, image: Path, wanted: Bitstream) -> Device:
        assert image.stat().st_size == wanted.size
        self._file.write_text(wanted.function_id)
        return self._device()

    def _device(self) -> Device:
        self._function = self._file.read_text()
        device = super()._device()
        (unit,) = device.root.units
        units = (replace(unit, needs_host=True),)
        return replace(device, root=replace(device.root, units=units))
