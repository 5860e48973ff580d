# SPDX-License-Identifier: Apache-2.0
"""A driver that cleans as the test configures."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.devices import CleanAborted
from cyborg_lite.model.devices.cleaning import CleanStep
from cyborg_lite.model.devices.devices import AllocatedHandle
from tests.doubles.drivers import ScriptedDriver

ERASE = CleanStep('erase', 'all data', abortable=True)
VERIFY = CleanStep('verify', 'nothing')


class CleaningDriver(ScriptedDriver):
    """Driver with two steps, each of which may fail or block."""

    # Any: driver options have various types.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self.steps: Sequence[CleanStep] = (ERASE, VERIFY)
        self.calls: list[tuple[str, str]] = []  # key of the handle, step
        self.failures: dict[str, BaseException] = {}  # by step
        self.blocks: dict[str, threading.Event] = {}  # by step
        self.started = threading.Event()

    def list_clean_steps(self, handle: AllocatedHandle) -> Sequence[CleanStep]:
        return self.steps

    def run_clean_step(
        self, handle: AllocatedHandle, name: str, abort: threading.Event
    ) -> str:
        self.calls.append((handle.key, name))
        self.started.set()
        block = self.blocks.get(name)
        while block is not None and not block.wait(0.01):
            if abort.is_set():
                raise CleanAborted()
        if name in self.failures:
            raise self.failures[name]
        return f'{name}-tool 1.0'
