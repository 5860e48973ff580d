# SPDX-License-Identifier: Apache-2.0
"""A driver out of the tree for an FPGA that takes what is loaded into it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.model import bitstreams
from cyborg_lite.model.bitstreams import Bitstream
from cyborg_lite.model.inventory import Deployable, Device, Finding, HandleType, Unit
from tests.fakes.bitstream_files import ARRIA10_REGION

RESOURCE_CLASS: Final = 'CUSTOM_LOADABLE'
_ADDRESS: Final = 'fa50:0c:00.0'
_SAID: Final = {
    bitstreams.VENDOR: 'intel',
    bitstreams.BOARD: 'PAC_ARRIA10',
    bitstreams.SHELL: '0x113000200000177',
    bitstreams.REGION: ARRIA10_REGION,
}


class LoadableDriver:
    """One card that fits the images of ``bitstream_files``; it forgets at its end."""

    NAME: ClassVar[str] = 'loadable_driver'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()

    # Any: as the options of drivers are.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self._host = host
        self._function = '0' * 32

    def discover(self) -> Iterator[Finding]:
        device = self._device()
        yield Finding(_ADDRESS, 'fa50:fa50', '', self.NAME, 'exists only here', device)

    def program(self, deployable: str, image: Path, wanted: Bitstream) -> Device:
        self._function = wanted.function_id
        return self._device()

    def _device(self) -> Device:
        info = {'domain': 'fa50', 'bus': '0c', 'device': '00', 'function': '0'}
        root = Deployable(
            name=f'{self._host.name}_{_ADDRESS}',
            resource_class=RESOURCE_CLASS,
            traits=('CUSTOM_LOADABLE', 'OWNER_CYBORG'),
            total=1,
            units=(Unit(_ADDRESS, HandleType.PCI, info),),
            attributes={**_SAID, bitstreams.FUNCTION: self._function},
        )
        return Device(
            type='FPGA',
            vendor='fa50',
            model='Loadable',
            driver='loadable',
            address=_ADDRESS,
            hardware_id=_ADDRESS,
            root=root,
        )
