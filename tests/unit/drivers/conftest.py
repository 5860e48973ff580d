# SPDX-License-Identifier: Apache-2.0
"""Fixtures: an empty host, functions that add to it, and its privileged process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.drivers.host import privileged
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


@pytest.fixture
def as_root(tmp_path: Path) -> Iterator[None]:
    """Let this process act as the privileged one, which would need root."""
    context: Any = privileged.CONTEXT  # the library has no types
    context.set_client_mode(False)
    privileged.set_root(str(tmp_path))
    yield
    context.set_client_mode(True)
    privileged.set_root('/')
