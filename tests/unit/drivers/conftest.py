# SPDX-License-Identifier: Apache-2.0
"""A small host to write PCI functions into, for what no fabricated host shows."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cyborg_lite.drivers.sysfs import Host
from tests.fakes import sysfs_device
from tests.fakes.sysfs_functions import Fields, Function, merged
from tests.fakes.sysfs_writer import Tree
from tests.unit.drivers.vgpu_bench import MakeBench, VgpuBench

Plug = Callable[..., Path]

_CARD: Fields = {
    'class': '030200',
    'rev': 'a1',
    'driver': 'nvidia',
    'iommu_group': 7,
    'numa': 0,
    'reset': 'flr',
}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host('compute-1', tmp_path)


@pytest.fixture
def plug(tmp_path: Path) -> Plug:
    """Puts a function into the host, a GPU unless told otherwise; its directory."""

    def put(
        address: str, ids: tuple[str, str] = ('10de', '1eb8'), **fields: object
    ) -> Path:
        function = Function(address, 'pci0000:00', merged(_CARD, fields), (*ids, *ids))
        sysfs_device.write(Tree(tmp_path, {address: function.directory}), function)
        return tmp_path / function.directory

    return put


@pytest.fixture
def make(tmp_path: Path) -> MakeBench:
    def build(name: str, *rules: str, timeout: float = 10) -> VgpuBench:
        return VgpuBench(tmp_path, name, *rules, timeout=timeout)

    return build
