# SPDX-License-Identifier: Apache-2.0
"""Host with NVIDIA cards, an emulated kernel and their driver."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import Deployable, Device
from cyborg_lite.testing.preparation_checks import build_handle
from tests.hosts.kernel import FakeKernel
from tests.hosts.scans import find_device


class VgpuBench:
    """Emulated host and the driver that scans it."""

    def __init__(self, root: Path, name: str, *rules: str, timeout: float = 10) -> None:
        self.kernel = FakeKernel(name, root, most_virtual=4)
        self.host = Host('compute-1', root, self.kernel)
        # Any: driver options have various types.
        self.options: dict[str, Any] = {
            'offer_without_reset': False,
            'vgpu_types': list(rules),
            'change_timeout': timeout,
        }
        self.restart()

    def restart(
        self, *remembered: AllocatedHandle, rules: tuple[str, ...] = ()
    ) -> None:
        if rules:
            self.options['vgpu_types'] = list(rules)
        self.driver = NvidiaGpu(self.host, self.options)
        self.driver.restore_handles(remembered)

    def device(self, address: str) -> Device:
        return find_device(self.driver, address)

    def root(self, address: str) -> Deployable:
        return self.device(address).root

    def handle(self, address: str, number: int = 0) -> AllocatedHandle:
        """Return a free handle of a function as allocated."""
        device = self.device(address)
        free = [handle for handle in device.root.handles if not handle.in_use]
        return build_handle(device, device.root, free[number])

    def prepare(self, address: str, number: int = 0) -> AllocatedHandle:
        """Prepare a free handle of a function and return it."""
        handle = self.handle(address, number)
        self.driver.prepare(handle)
        return handle

    def mdevs(self) -> set[str]:
        return set(self.host.names('sys/bus/mdev/devices'))

    def vgpu_type(self, address: str) -> str | None:
        return self.host.text(f'sys/bus/pci/devices/{address}/nvidia/current_vgpu_type')


def type_file(address: str) -> str:
    return f'sys/bus/pci/devices/{address}/nvidia/current_vgpu_type'


MakeBench = Callable[..., VgpuBench]
