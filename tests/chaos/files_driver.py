# SPDX-License-Identifier: Apache-2.0
"""A driver out of the tree whose preparations can be counted: each is a file.

It stands for everything that a host must do before a guest starts. What is left in the
folder when nothing is bound was leaked; a file that is missing under a bound request
was never prepared.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import DriverError
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Deployable, Device, Finding, HandleType, Unit

UNITS: Final = 16
_ADDRESS: Final = 'fa4f:0c:00.0'


class FilesDriver:
    """One card of class VGPU with sixteen units."""

    NAME: ClassVar[str] = 'files_driver'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        cfg.StrOpt('folder', default='/nowhere', help='Where the files are made.'),
        cfg.FloatOpt('pause', default=0.0, help='Seconds that each of them takes.'),
    )

    # Any: as the options of drivers are.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self._host = host
        self._folder = Path(options['folder'])
        self._pause = float(options['pause'])

    def discover(self) -> Iterator[Finding]:
        root = Deployable(
            name=f'{self._host.name}_{_ADDRESS}',
            resource_class='VGPU',
            traits=('CUSTOM_FILES', 'OWNER_CYBORG'),
            total=UNITS,
            units=tuple(_unit(number) for number in range(UNITS)),
        )
        device = Device(
            type='GPU',
            vendor='fa4f',
            model='Files',
            driver=self.NAME,
            address=_ADDRESS,
            hardware_id=_ADDRESS,
            root=root,
        )
        yield Finding(_ADDRESS, 'fa4f:fa4f', '', self.NAME, 'exists only here', device)

    def prepare(self, handle: HeldHandle) -> None:
        file = self._folder / handle.uuid
        owner = file.read_text() if file.exists() else handle.arq_uuid
        if owner != handle.arq_uuid:
            raise DriverError(reason=f'{handle.uuid} is still prepared for {owner}')
        time.sleep(self._pause)
        file.write_text(handle.arq_uuid)

    def release(self, handle: HeldHandle) -> None:
        time.sleep(self._pause)
        (self._folder / handle.uuid).unlink(missing_ok=True)


def _unit(number: int) -> Unit:
    where = {'domain': 'fa4f', 'bus': '0c', 'device': '00', 'function': '0'}
    mark = {'asked_type': 'files-1', 'vgpu_mark': f'files-1_{number}'}
    return Unit(f'{_ADDRESS}/{number}', HandleType.MDEV, where | mark, needs_host=True)
