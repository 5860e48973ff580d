# SPDX-License-Identifier: Apache-2.0
"""Fixtures: an empty host and a function that adds PCI functions to it."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from tests.hosts import sysfs_device
from tests.hosts.sysfs_device import Plug
from tests.hosts.sysfs_functions import Fields, Function, merge_fields
from tests.hosts.sysfs_writer import Tree
from tests.hosts.vgpu_bench import MakeBench, VgpuBench

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
    """Add a PCI function to the host, by default a GPU, and return its directory."""

    def put(
        address: str, ids: tuple[str, str] = ('10de', '1eb8'), **fields: object
    ) -> Path:
        function = Function(
            address, 'pci0000:00', merge_fields(_CARD, fields), (*ids, *ids)
        )
        sysfs_device.write(Tree(tmp_path, {address: function.directory}), function)
        return tmp_path / function.directory

    return put


@pytest.fixture
def make(tmp_path: Path) -> MakeBench:
    def build(name: str, *rules: str, timeout: float = 10) -> VgpuBench:
        return VgpuBench(tmp_path, name, *rules, timeout=timeout)

    return build
