# SPDX-License-Identifier: Apache-2.0
"""Names of PCI vendors in traits, of the drivers for several vendors."""

from collections.abc import Mapping
from typing import Final

VENDOR_NAMES: Final[Mapping[str, str]] = {
    '1002': 'AMD',
    '102b': 'MATROX',
    '10de': 'NVIDIA',
    '10ee': 'XILINX',
    '144d': 'SAMSUNG',
    '15b3': 'MELLANOX',
    '177d': 'MARVELL',
    '19e5': 'HUAWEI',
    '1bd4': 'INSPUR',
    '1da3': 'HABANA',
    '8086': 'INTEL',
}
