# SPDX-License-Identifier: Apache-2.0
"""NVIDIA cards by device id: what people call them, and what sysfs does not say."""

from collections.abc import Mapping
from typing import Final

MODELS: Final[Mapping[str, str]] = {
    '15f7': 'Tesla P100 PCIe 12GB',
    '1db4': 'Tesla V100 PCIe 16GB',
    '1db6': 'Tesla V100 PCIe 32GB',
    '1eb8': 'Tesla T4',
    '20b0': 'A100 SXM4 40GB',
    '20b2': 'A100 SXM4 80GB',
    '20b5': 'A100 PCIe 80GB',
    '20f1': 'A100 PCIe 40GB',
    '2235': 'A40',
    '2236': 'A10',
    '2330': 'H100 SXM5 80GB',
    '2331': 'H100 PCIe',
    '2335': 'H200 SXM 141GB',
    '26b5': 'L40',
    '26b9': 'L40S',
}

# GiB that vGPUs share.
MEMORY: Final[Mapping[str, int]] = {
    '1eb8': 16,
    '20b0': 40,
    '20b2': 80,
    '20b5': 80,
    '20f1': 40,
    '2235': 48,
    '2236': 24,
    '2330': 80,
    '2331': 80,
    '2335': 141,
    '26b5': 48,
    '26b9': 48,
}
