# SPDX-License-Identifier: Apache-2.0
"""Out-of-tree driver of an FPGA that can be programmed."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.bitstreams.bitstreams import Bitstream
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Deployable,
    Device,
    DiscoveryResult,
    HandleType,
)
from tests.builders.bitstream_files import ARRIA10_REGION

RESOURCE_CLASS: Final = 'CUSTOM_LOADABLE'
_ADDRESS: Final = 'fa50:0c:00.0'
_ATTRIBUTES: Final = {
    bitstreams.VENDOR: 'intel',
    bitstreams.BOARD: 'PAC_ARRIA10',
    bitstreams.SHELL: '0x113000200000177',
    bitstreams.REGION: ARRIA10_REGION,
}


class LoadableDriver:
    """Driver of one card that fits ``bitstream_files``; it keeps no state on disk."""

    NAME: ClassVar[str] = 'loadable_driver'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()

    # Any: driver options have various types.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self._host = host
        self._function = '0' * 32

    def discover(self) -> Iterator[DiscoveryResult]:
        device = self._device()
        yield DiscoveryResult(
            _ADDRESS, 'fa50:fa50', '', self.NAME, 'exists only here', device
        )

    def program(self, deployable: str, image: Path, bitstream: Bitstream) -> Device:
        self._function = bitstream.function_id
        return self._device()

    def _device(self) -> Device:
        info = {'domain': 'fa50', 'bus': '0c', 'device': '00', 'function': '0'}
        root = Deployable(
            name=f'{self._host.name}_{_ADDRESS}',
            resource_class=RESOURCE_CLASS,
            traits=('CUSTOM_LOADABLE', 'OWNER_CYBORG'),
            total=1,
            handles=(AttachHandle(_ADDRESS, HandleType.PCI, info),),
            attributes={**_ATTRIBUTES, bitstreams.FUNCTION: self._function},
        )
        return Device(
            type='FPGA',
            vendor='fa50',
            model='Loadable',
            driver='loadable',
            control_address=_ADDRESS,
            hardware_id=_ADDRESS,
            root=root,
        )
