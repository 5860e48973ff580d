# SPDX-License-Identifier: Apache-2.0
"""Drivers of the package on fixture hosts, for the conformance suite."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cyborg_lite.drivers.ai.chips import Ascend, Gaudi
from cyborg_lite.drivers.base import Driver
from cyborg_lite.drivers.fake import FakeDriver
from cyborg_lite.drivers.fpga.inspur import InspurFpga
from cyborg_lite.drivers.fpga.intel import IntelFpga
from cyborg_lite.drivers.fpga.loading import ProgrammableFpgaDriver
from cyborg_lite.drivers.fpga.xilinx import XilinxFpga
from cyborg_lite.drivers.gpus.amd import AmdGpu
from cyborg_lite.drivers.gpus.intel import IntelGpu
from cyborg_lite.drivers.host.kernel import Kernel
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.network.sriov_nic import SriovNic
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.drivers.pci.generic import GenericPci
from cyborg_lite.drivers.qat.driver import IntelQat
from cyborg_lite.drivers.storage.nvme import NvmeDrive
from cyborg_lite.drivers.storage.spdk import SpdkTargets
from cyborg_lite.testing.driver_checks import Bench
from tests.doubles.spdk import FakeSpdk
from tests.hosts import fixture_drivers, sysfs_tree
from tests.hosts.kernel import FakeKernel
from tests.hosts.nvme_tools import NvmeKernel

# Seconds for one change: longer than the emulation takes on a busy machine.
_TIMEOUT: Final = 3.0

# Any: driver options have various types.
Options = Mapping[str, Any]


def bench(kind: type[Driver], name: str, **options: Any) -> Bench:
    defaults = {option.dest: option.default for option in kind.OPTIONS}
    chosen = {**defaults, 'change_timeout': _TIMEOUT, **options}

    def make(host: Host) -> Driver:
        return kind(host, chosen)

    def build(root: Path) -> Kernel:
        return FakeKernel(name, root, most_virtual=4)

    return Bench(make, build)


def fpga_bench(
    kind: type[ProgrammableFpgaDriver],
    name: str,
    **options: Any,  # as for ``bench``
) -> Bench:
    """Return a bench whose tools change the regions of the emulated host."""
    defaults = {option.dest: option.default for option in kind.OPTIONS}
    chosen = {**defaults, **options}

    return Bench(lambda host: kind(host, chosen), lambda root: FakeKernel(name, root))


def vgpu_rules(name: str) -> list[str]:
    """Return the vGPU rules that the fixture configures."""
    return fixture_drivers.list_vgpu_rules(sysfs_tree.expectation(name)['config'])


def fixture_bench(kind: type[Driver], name: str) -> Bench:
    """Return a bench of a driver with the options of the fixture host."""
    config = sysfs_tree.expectation(name).get('config', {})
    return bench(kind, name, **fixture_drivers.read_options(config).get(kind.NAME, {}))


def on_demand_bench(kind: type[Driver], name: str, card: str, **options: Any) -> Bench:
    """Return a bench of a card whose virtual functions do not exist yet."""
    plain = bench(kind, name, virtual_functions=[f'{card}=4'], **options)

    def build(root: Path) -> Kernel:
        kernel = FakeKernel(name, root, most_virtual=4)
        kernel.disable(card)
        return kernel

    return Bench(plain.make, build)


def spdk_bench() -> Bench:
    """Return a bench of a host on which a stand-in plays SPDK."""

    def build(root: Path) -> Kernel:
        FakeSpdk(root).connects_hosts = True
        return FakeKernel('generic-pci', root)

    return Bench(bench(SpdkTargets, 'generic-pci').make, build)


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
    'Intel on demand': on_demand_bench(IntelGpu, 'generic-pci', '0000:d9:00.0'),
    'QAT on demand': on_demand_bench(IntelQat, 'qat-services', '0000:e8:00.0'),
    'NIC on demand': on_demand_bench(
        SriovNic,
        'qat-x710',
        '0000:18:00.0',
        physical_device_mappings=['physnet1:ens1f0'],
    ),
}
PREPARING['SPDK'] = spdk_bench()
PREPARING['GPU groups'] = fixture_bench(NvidiaGpu, 'function-groups')
PREPARING['NIC groups'] = fixture_bench(SriovNic, 'function-groups')
LOOKING: Final = {
    **PREPARING,
    'NVIDIA whole': bench(NvidiaGpu, 't4-mdev'),
    'AMD': bench(AmdGpu, 'generic-pci'),
    'Intel as found': bench(IntelGpu, 'generic-pci'),
    'fake': bench(FakeDriver, 'generic-pci'),
    'Intel FPGA': fixture_bench(IntelFpga, 'fpga-intel'),
    'Xilinx FPGA': bench(XilinxFpga, 'fpga-xilinx-u250'),
    'Inspur FPGA': bench(InspurFpga, 'fpga-intel'),
    'QAT': fixture_bench(IntelQat, 'qat-services'),
    'QAT out of order': fixture_bench(IntelQat, 'qat-x710'),
    'NIC': fixture_bench(SriovNic, 'qat-x710'),
    'NIC of the host': fixture_bench(SriovNic, 'cx6dx-sriov'),
    'NVMe': fixture_bench(NvmeDrive, 'nvme-ascend'),
    'NVMe with multipath': fixture_bench(NvmeDrive, 'nvme-lvm'),
    'Ascend': fixture_bench(Ascend, 'nvme-ascend'),
    'Gaudi': fixture_bench(Gaudi, 'dpu-gaudi'),
    'DPU': fixture_bench(SriovNic, 'dpu-gaudi'),
    'any PCI function': fixture_bench(GenericPci, 'generic-pci'),
}
LOADING: Final = {
    'Intel FPGA': fpga_bench(
        IntelFpga, 'fpga-intel', offer_management_function=True, cleaning='never'
    ),
    'Xilinx FPGA': fpga_bench(XilinxFpga, 'fpga-xilinx-u250', cleaning='never'),
}
CLEANING: Final = {
    'NVMe': Bench(
        fixture_bench(NvmeDrive, 'nvme-lvm').make,
        lambda root: NvmeKernel('nvme-lvm', root),
    ),
    'any PCI function': bench(
        GenericPci,
        'generic-pci',
        device_spec=['{"vendor_id": "1d55", "cleaning": "after-use"}'],
    ),
}
MODES: Final = {
    'QAT': on_demand_bench(IntelQat, 'qat-services', '0000:e8:00.0'),
    'MIG': bench(
        NvidiaGpu, 'a100-sriov-mig', vgpu_types=['0000:c1:00.0=nvidia-474+nvidia-476']
    ),
    'DFL': bench(IntelFpga, 'fpga-intel'),
    'namespaces': Bench(
        bench(
            NvmeDrive, 'nvme-lvm', modes=['8086:0a54 = namespaces-2'], drives=['*']
        ).make,
        lambda root: NvmeKernel('nvme-lvm', root),
    ),
}
