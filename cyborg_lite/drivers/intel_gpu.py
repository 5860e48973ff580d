# SPDX-License-Identifier: Apache-2.0
"""Intel data centre GPUs: whole, or shared as virtual functions by their driver xe.

The driver gives all virtual functions equal shares of the card when nobody says
otherwise (kernel, ``sysfs-driver-intel-xe-sriov``).
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from oslo_config import cfg

from cyborg_lite.drivers.kernel import CHANGE_TIMEOUT
from cyborg_lite.drivers.pci import PciDriver
from cyborg_lite.drivers.sriov_gpu import VIRTUAL_FUNCTIONS, SriovGpu


class IntelGpu(SriovGpu):
    NAME: ClassVar[str] = 'intel_gpu_driver'
    VENDOR: ClassVar[str] = '8086'
    VENDOR_NAME: ClassVar[str] = 'INTEL'
    CLASSES: ClassVar[tuple[str, ...]] = ('0300', '0302', '0380')
    DEVICE_TYPE: ClassVar[str] = 'GPU'
    RESOURCE_CLASS: ClassVar[str] = 'PGPU'
    HOST_DRIVERS: ClassVar[tuple[str, ...]] = ('xe', 'i915')
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = (
        *PciDriver.OPTIONS,
        VIRTUAL_FUNCTIONS,
        CHANGE_TIMEOUT,
    )
    MODELS: ClassVar[Mapping[str, str]] = {
        '0bd5': 'Data Center GPU Max 1550',
        '56c0': 'Data Center GPU Flex 170',
        '56c1': 'Data Center GPU Flex 140',
    }
