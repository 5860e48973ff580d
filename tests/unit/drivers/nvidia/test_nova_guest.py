# SPDX-License-Identifier: Apache-2.0
"""Mdevs that the driver and Nova 34 share, in each order of their starts."""

import errno
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.errors.drivers import DeviceBusy
from cyborg_lite.model.devices.devices import AllocatedHandle
from tests.doubles.nova_guest import HostDevice, NovaHost
from tests.hosts.vgpu_bench import VgpuBench

DIVIDED = '0000:af:00.0'
TYPE = 'nvidia-231'


@pytest.fixture
def bench(tmp_path: Path) -> VgpuBench:
    return VgpuBench(tmp_path, 't4-mdev', f'{DIVIDED}={TYPE}')


@pytest.fixture
def nova(bench: VgpuBench) -> NovaHost:
    return NovaHost(bench.kernel)


# Any: JSON of the API.
def show(handle: AllocatedHandle) -> dict[str, Any]:
    """Return the fields of an ARQ that Nova reads."""
    return {
        'attach_handle_type': handle.type,
        'attach_handle_uuid': handle.uuid,
        'attach_handle_info': handle.info,
    }


def list_definitions(bench: VgpuBench) -> set[str]:
    return {path.name for path in (bench.kernel.root / 'etc/mdevctl.d').glob('*/*')}


def leave_creation_to_nova(bench: VgpuBench) -> NvidiaGpu:
    """Return the driver of a host on which Nova creates the mdevs."""
    options = {'vgpu_types': [f'{DIVIDED}={TYPE}'], 'creates_mdevs': False}
    return NvidiaGpu(bench.host, options)


def test_guest_has_mdev_of_handle(bench: VgpuBench, nova: NovaHost) -> None:
    handle = bench.handle(DIVIDED)
    bench.driver.prepare(handle)
    before = list(bench.kernel.written)
    assert nova.define_guest([show(handle)]) == [HostDevice('mdev', handle.uuid)]
    assert bench.kernel.written == before
    assert list_definitions(bench) == set()


def test_nova_creates_mdev_and_driver_removes_it(
    bench: VgpuBench, nova: NovaHost
) -> None:
    driver = leave_creation_to_nova(bench)
    handle = bench.handle(DIVIDED)
    driver.prepare(handle)
    assert handle.uuid not in bench.mdevs()
    assert nova.define_guest([show(handle)]) == [HostDevice('mdev', handle.uuid)]
    assert handle.uuid in bench.mdevs() & list_definitions(bench)
    driver.release(handle)
    assert handle.uuid not in bench.mdevs() | list_definitions(bench)


def test_leftover_definition_prevents_start_until_release(
    bench: VgpuBench, nova: NovaHost
) -> None:
    handle = bench.handle(DIVIDED)
    leave_creation_to_nova(bench).prepare(handle)
    nova.define_guest([show(handle)])
    bench.kernel.reboot()
    bench.kernel.refuse('/create', errno.EIO)
    with pytest.raises(OSError, match='Input/output'):
        nova.start_compute()
    bench.kernel.refuse('/create', errno.EIO)
    with pytest.raises(DeviceBusy):
        bench.driver.prepare(handle)
    nova.start_compute()
    assert list_definitions(bench) == set()
