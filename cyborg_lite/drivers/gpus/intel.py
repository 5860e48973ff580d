# SPDX-License-Identifier: Apache-2.0
"""Intel data centre GPUs: whole cards, or virtual functions of the driver xe.

By default xe gives all virtual functions equal shares of the card (kernel:
ABI/testing/sysfs-driver-intel-xe-sriov).
"""

from typing import ClassVar

from cyborg_lite.drivers.gpus.sriov import SriovGpu


class IntelGpu(SriovGpu):
    """Driver for Intel GPUs."""

    NAME: ClassVar[str] = 'intel_gpu_driver'
