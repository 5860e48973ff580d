# SPDX-License-Identifier: Apache-2.0
"""Network cards and DPUs of several vendors."""

from collections.abc import Mapping
from typing import ClassVar

from cyborg_lite.drivers.network.cards import NetworkCardDriver


class SriovNic(NetworkCardDriver):
    """Driver for network cards that are shared as virtual functions."""

    NAME: ClassVar[str] = 'sriov_nic_driver'
    MODELS: ClassVar[Mapping[str, str]] = {
        '8086:1572': 'Ethernet Controller X710',
        '8086:158b': 'Ethernet Controller XXV710',
        '8086:1593': 'Ethernet Controller E810',
        '15b3:101d': 'ConnectX-6 Dx',
        '15b3:1021': 'ConnectX-7',
        '15b3:a2d6': 'BlueField-2',
        '15b3:a2dc': 'BlueField-3',
        '177d:b100': 'Octeon CN98',
        '177d:b200': 'Octeon CN93',
        '177d:b900': 'Octeon CN10KA',
        '177d:ba00': 'Octeon CN10KB',
        '177d:bc00': 'Octeon CNF10KA',
        '177d:bd00': 'Octeon CNF10KB',
    }
