# SPDX-License-Identifier: Apache-2.0
"""The drivers with the options that the operator of a fixture host has set."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cyborg_lite.drivers.ai.chips import Ascend, Gaudi
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.fpga.inspur import InspurFpga
from cyborg_lite.drivers.fpga.intel import IntelFpga
from cyborg_lite.drivers.fpga.xilinx import XilinxFpga
from cyborg_lite.drivers.gpus.amd import AmdGpu
from cyborg_lite.drivers.gpus.intel import IntelGpu
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.network.sriov_nic import SriovNic
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.drivers.pci.generic import GenericPci
from cyborg_lite.drivers.qat.driver import IntelQat
from cyborg_lite.drivers.storage.nvme import NvmeDrive
from cyborg_lite.drivers.storage.spdk import SpdkTargets

DRIVERS: Final[tuple[type[Driver], ...]] = (
    AmdGpu,
    Ascend,
    Gaudi,
    GenericPci,
    InspurFpga,
    IntelFpga,
    IntelGpu,
    IntelQat,
    NvidiaGpu,
    NvmeDrive,
    SpdkTargets,
    SriovNic,
    XilinxFpga,
)

# Any, here and below: YAML values have no common type.
Config = Mapping[str, Any]


def read_options(config: Config) -> dict[str, dict[str, list[str]]]:
    """Return the options in ``expect.config`` of a fixture host, by driver."""
    management = {'offer_management_function': ['true']}
    groups = config.get('groups', {})
    partitions = config.get('fabric_partitions', [])
    options: dict[str, dict[str, list[str]]] = {
        IntelFpga.NAME: management if config.get('fpga_management') else {},
        NvidiaGpu.NAME: {'vgpu_types': list_vgpu_rules(config)},
        NvmeDrive.NAME: {'drives': ['*']},
        SriovNic.NAME: {
            'physical_device_mappings': _list_mappings(config.get('physnet', {})),
            'function_device_mappings': _list_mappings(config.get('function', {})),
        },
        GenericPci.NAME: {
            'device_spec': [
                json.dumps(entry) for entry in config.get('pci_passthrough', ())
            ]
        },
    }
    for name, texts in groups.items():
        options[name]['groups'] = texts
    if partitions:
        options[NvidiaGpu.NAME]['fabric_partitions'] = partitions
    return options


def list_vgpu_rules(config: Config) -> list[str]:
    """Return the vGPU rules of the operator."""
    return [
        f'{card}={"+".join(types) if isinstance(types, list) else types}'
        for card, types in config.get('vgpu_types', {}).items()
    ]


def create_drivers(host: Host, config: Config) -> Iterator[Driver]:
    """Yield all drivers for a fixture host."""
    options = read_options(config)
    for kind in DRIVERS:
        defaults = {option.dest: option.default for option in kind.OPTIONS}
        yield kind(host, defaults | options.get(kind.NAME, {}))


def _list_mappings(interfaces: Mapping[str, list[str]]) -> list[str]:
    return [f'{name}:{"|".join(items)}' for name, items in interfaces.items()]
