# SPDX-License-Identifier: Apache-2.0
"""A host with NVIDIA cards and an emulated kernel, and the driver that looks at it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cyborg_lite.drivers.kit_preparing import handle_of
from cyborg_lite.drivers.nvidia_gpu import NvidiaGpu
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Deployable, Device
from tests.fakes.kernel import FakeKernel


class VgpuBench:
    """A host with an emulated kernel, and a driver that looks at it."""

    def __init__(self, root: Path, name: str, *rules: str, timeout: float = 10) -> None:
        self.kernel = FakeKernel(name, root, most_virtual=4)
        self.host = Host('compute-1', root, self.kernel)
        # Any: as the options of drivers are.
        self.options: dict[str, Any] = {
            'offer_without_reset': False,
            'vgpu_types': list(rules),
            'change_timeout': timeout,
        }
        self.restart()

    def restart(self, *remembered: HeldHandle, rules: tuple[str, ...] = ()) -> None:
        if rules:
            self.options['vgpu_types'] = list(rules)
        self.driver = NvidiaGpu(self.host, self.options)
        self.driver.recall(remembered)

    def device(self, address: str) -> Device:
        (found,) = (e for e in self.driver.discover() if e.address == address)
        assert found.device is not None, found.reason
        return found.device

    def root(self, address: str) -> Deployable:
        return self.device(address).root

    def handle(self, address: str, number: int = 0) -> HeldHandle:
        """Of one of the units that are free."""
        device = self.device(address)
        free = [unit for unit in device.root.units if not unit.in_use]
        return handle_of(device, device.root, free[number])

    def mdevs(self) -> set[str]:
        return set(self.host.names('sys/bus/mdev/devices'))

    def vgpu_type(self, address: str) -> str | None:
        return self.host.text(f'sys/bus/pci/devices/{address}/nvidia/current_vgpu_type')


def type_file(address: str) -> str:
    return f'sys/bus/pci/devices/{address}/nvidia/current_vgpu_type'


MakeBench = Callable[..., VgpuBench]
