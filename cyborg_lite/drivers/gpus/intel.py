# SPDX-License-Identifier: Apache-2.0
"""Intel data centre GPUs: whole cards, or virtual functions of the driver xe.

By default xe gives all virtual functions equal shares of the card (kernel:
ABI/testing/sysfs-driver-intel-xe-sriov).
"""

from collections.abc import Mapping
from typing import ClassVar

from cyborg_lite.drivers.gpus.sriov import SriovGpu


class IntelGpu(SriovGpu):
    """Driver for Intel GPUs."""

    NAME: ClassVar[str] = 'intel_gpu_driver'
    VENDOR: ClassVar[str] = '8086'
    VENDOR_NAME: ClassVar[str] = 'INTEL'
    CLASSES: ClassVar[tuple[str, ...]] = ('0300', '0302', '0380')
    HOST_DRIVERS: ClassVar[tuple[str, ...]] = ('xe', 'i915')
    MODELS: ClassVar[Mapping[str, str]] = {
        '0bd5': 'Data Center GPU Max 1550',
        '56c0': 'Data Center GPU Flex 170',
        '56c1': 'Data Center GPU Flex 140',
    }
