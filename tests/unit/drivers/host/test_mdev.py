# SPDX-License-Identifier: Apache-2.0
"""Tests of the creation and removal of mediated devices."""

from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.drivers.host.kernel import Writer
from cyborg_lite.drivers.host.mdev import Mdevs, MdevSpec
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DeviceGone
from tests.hosts.kernel import FakeKernel

CARD = '0000:af:00.0'
UUID = '0e5e0f4a-1f6c-4d5e-9f5e-000000000001'
SPEC = MdevSpec(UUID, 'nvidia-231', CARD, CARD)


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel('t4-mdev', tmp_path)


@pytest.fixture
def mdevs(kernel: FakeKernel) -> Mdevs:
    host = Host('compute-1', kernel.root, kernel)
    return Mdevs(host, Writer(kernel.root, kernel, 30))


def list_mdevs(kernel: FakeKernel) -> set[str]:
    return set(Host('compute-1', kernel.root).names('sys/bus/mdev/devices'))


def test_create_and_remove_are_idempotent(mdevs: Mdevs, kernel: FakeKernel) -> None:
    before = list_mdevs(kernel)
    for _ in range(2):
        mdevs.create(SPEC)
        assert list_mdevs(kernel) == before | {UUID}
        assert mdevs.exists(SPEC)
    for _ in range(2):
        mdevs.remove(SPEC)
        assert list_mdevs(kernel) == before
        assert not mdevs.exists(SPEC)
    assert len(kernel.written) == 2


def test_exists_compares_type_and_parent(mdevs: Mdevs) -> None:
    mdevs.create(SPEC)
    assert not mdevs.exists(replace(SPEC, type_id='nvidia-234'))
    assert not mdevs.exists(replace(SPEC, parent='0000:3b:00.0'))


@pytest.mark.parametrize(
    'spec', [replace(SPEC, type_id='nvidia-9999'), replace(SPEC, parent='0000:99:00.0')]
)
def test_create_unsupported_type_or_parent_raises(mdevs: Mdevs, spec: MdevSpec) -> None:
    with pytest.raises(DeviceGone):
        mdevs.create(spec)
