# SPDX-License-Identifier: Apache-2.0
"""Tests of GPUs that are offered as a whole or as virtual functions."""

from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.drivers.gpus.intel import IntelGpu
from cyborg_lite.drivers.gpus.sriov import SriovGpu
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.model.traits import OWNER_CYBORG
from tests.hosts.kernel import FakeKernel

_FLEX = '0000:d9:00.0'


@pytest.fixture
def host(tmp_path: Path) -> Host:
    kernel = FakeKernel('generic-pci', tmp_path)
    return Host('compute-1', kernel.root, kernel)


# Any: driver options have various types.
def build_driver(host: Host, **options: Any) -> SriovGpu:
    return IntelGpu(host, {'offer_without_reset': False, **options})


def test_shared_card_has_traits_of_functions(host: Host) -> None:
    """A profile for a whole card must not get one of its functions."""
    driver = build_driver(host)
    (device,) = (result.device for result in driver.discover() if result.device)
    traits = driver.shared_traits(PciFunction(host, _FLEX))
    assert traits == (OWNER_CYBORG, 'CUSTOM_INTEL_56C0_SRIOV_VF')
    assert set(traits) <= set(device.root.traits)
    assert device.root.resource_class == 'VGPU'
    assert (device.control_address, device.type) == (_FLEX, 'GPU')
    assert device.model == IntelGpu.MODELS['56c0']
    assert _FLEX not in {handle.key for handle in device.root.handles}
