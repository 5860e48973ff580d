# SPDX-License-Identifier: Apache-2.0
"""AMD Instinct and Radeon PRO GPUs: whole, or as virtual functions of the GIM driver.

How many virtual functions there are is a setting of that driver and not ours.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from cyborg_lite.drivers.sriov_gpu import SriovGpu
from cyborg_lite.drivers.sysfs import PciFunction
from cyborg_lite.model.inventory import Device
from cyborg_lite.model.usage import Usage


class AmdGpu(SriovGpu):
    NAME: ClassVar[str] = 'amd_gpu_driver'
    VENDOR: ClassVar[str] = '1002'
    VENDOR_NAME: ClassVar[str] = 'AMD'
    CLASSES: ClassVar[tuple[str, ...]] = ('0300', '0302', '0380', '1200')
    DEVICE_TYPE: ClassVar[str] = 'GPU'
    RESOURCE_CLASS: ClassVar[str] = 'PGPU'
    HOST_DRIVERS: ClassVar[tuple[str, ...]] = ('amdgpu', 'gim')
    MODELS: ClassVar[Mapping[str, str]] = {
        '740f': 'Instinct MI210',
        '74a1': 'Instinct MI300X',
    }

    def serial(self, function: PciFunction) -> str | None:
        return function.text('unique_id')

    def usage(self, device: Device) -> Usage:
        card = PciFunction(self._host, device.address)
        usage = super().usage(device)
        if card.suspended or card.lost:
            return usage
        return replace(
            usage,
            busy_percent=card.number('gpu_busy_percent'),
            memory_used=card.number('mem_info_vram_used'),
            memory_total=card.number('mem_info_vram_total'),
        )
