# SPDX-License-Identifier: Apache-2.0
"""The drivers of the package on fabricated hosts, for the conformance suite."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cyborg_lite.drivers.amd_gpu import AmdGpu
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.fake import FakeDriver
from cyborg_lite.drivers.fpga_loading import LoadingFpgaDriver
from cyborg_lite.drivers.inspur_fpga import InspurFpga
from cyborg_lite.drivers.intel_fpga import IntelFpga
from cyborg_lite.drivers.intel_gpu import IntelGpu
from cyborg_lite.drivers.kernel import Kernel
from cyborg_lite.drivers.kit import Bench
from cyborg_lite.drivers.nvidia_gpu import NvidiaGpu
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.drivers.xilinx_fpga import XilinxFpga
from tests.fakes import sysfs_tree
from tests.fakes.kernel import FakeKernel

# Seconds for one change: longer than the emulation takes on a busy machine.
_TIMEOUT: Final = 3.0

# Any: as the options of drivers are.
Options = Mapping[str, Any]


def bench(kind: type[Driver], name: str, **options: Any) -> Bench:
    defaults = {each.dest: each.default for each in kind.OPTIONS}
    chosen = {**defaults, 'change_timeout': _TIMEOUT, **options}

    def make(host: Host) -> Driver:
        return kind(host, chosen)

    def build(root: Path) -> Kernel:
        kernel = FakeKernel(name, root, most_virtual=4)
        if kind is IntelGpu and options:
            kernel.disable('0000:d9:00.0')
        return kernel

    return Bench(make, build)


def fpga_bench(kind: type[LoadingFpgaDriver], name: str) -> Bench:
    """Its tools change the regions of the host, by way of the kernel."""
    chosen = {each.dest: each.default for each in kind.OPTIONS}

    return Bench(lambda host: kind(host, chosen), lambda root: FakeKernel(name, root))


def vgpu_rules(name: str) -> list[str]:
    """What the fixture says that the operator configured."""
    wanted = sysfs_tree.expectation(name)['config']['vgpu_types']
    return [
        f'{card}={"+".join(types) if isinstance(types, list) else types}'
        for card, types in wanted.items()
    ]


PREPARING: Final = {
    'mdevs': bench(NvidiaGpu, 't4-mdev', vgpu_types=vgpu_rules('t4-mdev')),
    'mdevs of virtual functions': bench(
        NvidiaGpu, 'a100-sriov-mig', vgpu_types=vgpu_rules('a100-sriov-mig')
    ),
    'types of virtual functions': bench(
        NvidiaGpu, 'l40s-vendor-vfio', vgpu_types=vgpu_rules('l40s-vendor-vfio')
    ),
    'virtual functions on demand': bench(
        NvidiaGpu, 'l40s-vendor-vfio', vgpu_types=['0000:c3:00.0=L40S-24Q']
    ),
    'Intel on demand': bench(
        IntelGpu, 'generic-pci', virtual_functions=['8086:56c0=4']
    ),
}
LOOKING: Final = {
    **PREPARING,
    'NVIDIA whole': bench(NvidiaGpu, 't4-mdev'),
    'AMD': bench(AmdGpu, 'generic-pci'),
    'Intel as found': bench(IntelGpu, 'generic-pci'),
    'fake': bench(FakeDriver, 'generic-pci'),
    'Intel FPGA': bench(IntelFpga, 'fpga-intel'),
    'Xilinx FPGA': bench(XilinxFpga, 'fpga-xilinx-u250'),
    'Inspur FPGA': bench(InspurFpga, 'fpga-intel'),
}
LOADING: Final = {
    'Intel FPGA': fpga_bench(IntelFpga, 'fpga-intel'),
    'Xilinx FPGA': fpga_bench(XilinxFpga, 'fpga-xilinx-u250'),
}
