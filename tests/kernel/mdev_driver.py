# SPDX-License-Identifier: Apache-2.0
"""Out-of-tree driver for the mediated devices of the image, which no vendor has.

The driver for NVIDIA cards is the one with mediated devices. It knows no other vendor.
"""

from typing import ClassVar

from cyborg_lite.drivers.nvidia.driver import NvidiaGpu


class MdevCards(NvidiaGpu):
    """Cards with the vendor and class of the device edu of QEMU."""

    NAME: ClassVar[str] = 'mdev_driver'
    VENDOR: ClassVar[str] = '1234'
    CLASSES: ClassVar[tuple[str, ...]] = ('00ff',)
