# SPDX-License-Identifier: Apache-2.0
"""Driver that records its actions, and whose report a test changes."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import DiscoveryResult
from tests.chaos.files_driver import UNITS, FilesDriver
from tests.chaos.history.records import HostAction, HostStep

RECORD = 'record.jsonl'
SIZE = 'size'
DELAY = 'delay'
"""Files beside the folder of the driver."""


class RecordedDriver(FilesDriver):
    """Driver of a card whose files state its handles and its delay in seconds."""

    NAME: ClassVar[str] = 'recorded_driver'

    # Any: driver options have various types.
    def __init__(self, host: Host, options: dict[str, object]) -> None:
        super().__init__(host, options)
        directory = Path(str(options['folder'])).parent
        self._record, self._size = directory / RECORD, directory / SIZE
        self._delay = directory / DELAY

    def discover(self) -> Iterator[DiscoveryResult]:
        size = int(self._size.read_text()) if self._size.exists() else UNITS
        for result in super().discover():
            assert result.device is not None
            root = result.device.root
            traits = (*root.traits, f'CUSTOM_SIZE_{size}')
            root = replace(root, total=size, handles=root.handles[:size], traits=traits)
            device = replace(result.device, root=root, driver=self.NAME)
            yield replace(result, device=device, driver=self.NAME)

    def prepare(self, handle: AllocatedHandle) -> None:
        if self._delay.exists():
            time.sleep(float(self._delay.read_text()))
        try:
            super().prepare(handle)
        except DriverError:
            self._write(HostAction.REFUSE, handle)
            raise
        self._write(HostAction.PREPARE, handle)

    def release(self, handle: AllocatedHandle) -> None:
        self._write(HostAction.RELEASE, handle)
        super().release(handle)

    def _write(self, action: HostAction, handle: AllocatedHandle) -> None:
        now = time.clock_gettime(time.CLOCK_REALTIME)  # a test may patch time.time
        fields = [now, self._host.name, handle.key, action.value, handle.arq_uuid]
        with self._record.open('a') as record:
            record.write(json.dumps(fields) + '\n')


def read_record(path: Path) -> list[HostStep]:
    """Return the actions of a host."""
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [
        HostStep(time, host, key, HostAction(action), arq)
        for time, host, key, action, arq in lines
    ]
