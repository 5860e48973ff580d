# SPDX-License-Identifier: Apache-2.0
"""Tests of the conformance checks of discovery with correct and wrong drivers."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.model.inventory import typed_attributes
from cyborg_lite.model.inventory.host_report import Device, DiscoveryResult
from cyborg_lite.model.inventory.typed_attributes import (
    AttributeDeclaration,
    AttributeType,
)
from cyborg_lite.testing import driver_checks
from cyborg_lite.testing.driver_checks import (
    ConformanceError,
    check_results,
    discover,
)
from tests.doubles.file_driver import FileDriver, build_bench


class FailingDriver(FileDriver):
    def discover(self) -> Iterator[DiscoveryResult]:
        raise ValueError('of a test')


class ChangingDriver(FileDriver):
    """Driver whose results differ between scans."""

    scans = 0

    def discover(self) -> Iterator[DiscoveryResult]:
        self.scans += 1
        for result in super().discover():
            yield replace(result, reason=f'scan {self.scans}')


class WritingDriver(FileDriver):
    def discover(self) -> Iterator[DiscoveryResult]:
        (self.host.root / 'log').write_text('scan')
        return super().discover()


class ProcessDriver(FileDriver):
    def discover(self) -> Iterator[DiscoveryResult]:
        subprocess.run(['true'], check=True)
        return super().discover()


class UndeclaringDriver(FileDriver):
    def discover(self) -> Iterator[DiscoveryResult]:
        numa_node = typed_attributes.NUMA_NODE.of(0)
        for result in super().discover():
            yield with_root(result, typed_attributes=(numa_node,))


class MisdeclaringDriver(FileDriver):
    ATTRIBUTES = (AttributeDeclaration('memory_mib', AttributeType.STRING),)


@pytest.mark.parametrize(
    ('driver', 'name', 'message'),
    [
        (ChangingDriver, 'discovery_is_repeatable', 'a second scan gives other'),
        (WritingDriver, 'discovery_is_read_only', 'discovery changes files'),
        (ProcessDriver, 'discovery_is_read_only', 'subprocess.Popen'),
        (UndeclaringDriver, 'attributes_are_declared', 'has an undeclared numa_node'),
        (MisdeclaringDriver, 'attributes_are_declared', 'must be declared as memory'),
        (FailingDriver, 'empty_host_is_accepted', r"ValueError\('of a test'\)"),
    ],
)
def test_wrong_driver_raises_conformance_error(
    driver: type[FileDriver], name: str, message: str, tmp_path: Path
) -> None:
    check = getattr(driver_checks, f'check_{name}')
    with pytest.raises(ConformanceError, match=message):
        check(build_bench(driver), tmp_path)


@pytest.fixture
def result(tmp_path: Path) -> DiscoveryResult:
    bench = build_bench()
    (result,) = discover(bench.make(bench.host(tmp_path)))
    return result


def with_root(result: DiscoveryResult, **fields: object) -> DiscoveryResult:
    device: Device | None = result.device
    assert device is not None
    root = replace(device.root, **fields)  # type: ignore[arg-type]  # of several types
    return replace(result, device=replace(device, root=root))


def test_check_results_names_each_fault(result: DiscoveryResult) -> None:
    assert result.device is not None
    handle = result.device.root.handles[0]
    infos: tuple[Any, ...] = {'bus': '0x5e'}, {'bus': 5}
    prefixed, number = (
        with_root(result, handles=(replace(handle, info=info),)) for info in infos
    )
    for faulty, message in (
        ([result, result], 'reported twice'),
        ([replace(result, reason='')], 'no reason'),
        ([with_root(result, name='card')], 'does not start with'),
        ([with_root(result, traits=('lower',))], 'lower is not a valid trait'),
        ([with_root(result, reserved=3)], 'reserves more than its total'),
        ([with_root(result, total=-1)], 'total cannot be -1'),
        ([prefixed], 'info values with 0x'),
        ([number], 'not strings'),
    ):
        with pytest.raises(ConformanceError, match=message):
            check_results(faulty)
