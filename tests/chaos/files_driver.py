# SPDX-License-Identifier: Apache-2.0
"""Out-of-tree driver whose preparations can be counted: each is a file.

It stands for all preparations of a host before an instance starts. A file that exists
when nothing is bound was leaked. A file that is missing for a bound ARQ was never
prepared.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from oslo_config import cfg

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Deployable,
    Device,
    DiscoveryResult,
    HandleType,
)

UNITS: Final = 16
_ADDRESS: Final = 'fa4f:0c:00.0'


class FilesDriver:
    """Driver of one card of class VGPU with sixteen handles."""

    NAME: ClassVar[str] = 'files_driver'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        cfg.StrOpt('folder', default='/nowhere', help='Where the files are made.'),
        cfg.FloatOpt('pause', default=0.0, help='Seconds that each of them takes.'),
    )

    # Any: driver options have various types.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self._host = host
        self._folder = Path(options['folder'])
        self._pause = float(options['pause'])

    def discover(self) -> Iterator[DiscoveryResult]:
        root = Deployable(
            name=f'{self._host.name}_{_ADDRESS}',
            resource_class='VGPU',
            traits=('CUSTOM_FILES', 'OWNER_CYBORG'),
            total=UNITS,
            handles=tuple(_unit(number) for number in range(UNITS)),
        )
        device = Device(
            type='GPU',
            vendor='fa4f',
            model='Files',
            driver=self.NAME,
            control_address=_ADDRESS,
            hardware_id=_ADDRESS,
            root=root,
        )
        yield DiscoveryResult(
            _ADDRESS, 'fa4f:fa4f', '', self.NAME, 'exists only here', device
        )

    def prepare(self, handle: AllocatedHandle) -> None:
        file = self._folder / handle.uuid
        owner = file.read_text() if file.exists() else handle.arq_uuid
        if owner != handle.arq_uuid:
            raise DriverError(reason=f'{handle.uuid} is still prepared for {owner}')
        time.sleep(self._pause)
        file.write_text(handle.arq_uuid)

    def release(self, handle: AllocatedHandle) -> None:
        time.sleep(self._pause)
        (self._folder / handle.uuid).unlink(missing_ok=True)


def _unit(number: int) -> AttachHandle:
    info = {'domain': 'fa4f', 'bus': '0c', 'device': '00', 'function': '0'}
    mark = {'asked_type': 'files-1', 'vgpu_mark': f'files-1_{number}'}
    return AttachHandle(
        f'{_ADDRESS}/{number}', HandleType.MDEV, info | mark, needs_host=True
    )
