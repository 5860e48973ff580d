# SPDX-License-Identifier: Apache-2.0
"""Crash checks accept correct drivers and describe the faults of wrong ones."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.bitstreams.bitstreams import Bitstream
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import (
    Device,
    DiscoveryResult,
)
from cyborg_lite.testing.cloud import Scenario
from cyborg_lite.testing.crash_checks import CRASH_CHECKS
from cyborg_lite.testing.driver_checks import ConformanceError
from tests.builders.bitstream_files import (
    ARRIA10_REGION,
    IMAGE_ID,
    OTHER_FUNCTION,
    gbs,
    image,
    xclbin,
)
from tests.builders.fpga_reports import FACTORY as FACTORY_FUNCTION
from tests.doubles.file_driver import FileDriver, build_bench
from tests.hosts.driver_benches import LOADING, LOOKING, PREPARING

Check = Callable[[Scenario, Path], None]

FACTORY = '0' * 32
FACTORY_IMAGE = 'aaaaaaaa-0000-4000-8000-00000000000f'
XILINX_INTERFACE = 'cec91e5efe5a3c9b3e2a0b0e3b6a2c11'
CONTENT = b'XeonFPGA' * 8


class Plain(FileDriver):
    """Correct driver of a programmable card with two handles."""

    def discover(self) -> Iterator[DiscoveryResult]:
        function = self.host.text('function') or FACTORY
        for result in super().discover():
            assert result.device is not None
            root = result.device.root
            traits = 'OWNER_CYBORG', f'CUSTOM_FPGA_FUNCTION_ID_{function.upper()}'
            attributes = {
                bitstreams.VENDOR: '8086 intel',
                bitstreams.BOARD: 'PAC_ARRIA10',
                bitstreams.VERSION: '1.1.3',
                bitstreams.SHELL: '113000200000177',
                bitstreams.REGION: ARRIA10_REGION,
                bitstreams.FUNCTION: function,
                **root.attributes,
            }
            root = replace(root, traits=traits, attributes=attributes)
            yield replace(result, device=replace(result.device, root=root))

    def device(self) -> Device:
        (result,) = self.discover()
        assert result.device is not None
        return result.device

    def program(self, deployable: str, image: Path, bitstream: Bitstream) -> Device:
        assert image.read_bytes() == CONTENT
        self.write('function', bitstream.function_id)
        return self.device()

    def write(self, path: str, text: str) -> None:
        self.host.kernel.write(self.host.root, path, text)

    def is_made(self, handle: AllocatedHandle) -> bool:
        return self.host.has(f'prepared/{handle.key.rpartition("/")[2]}')


def loading(kind: type[Plain]) -> Scenario:
    """Return a scenario whose profile names a bitstream in Glance."""
    group = {'accel:bitstream_id': IMAGE_ID}
    return Scenario(
        build_bench(kind), number=1, group=group, images=[(image(CONTENT), CONTENT)]
    )


def intel() -> Scenario:
    """Return a scenario whose card has the factory function, which Glance has, too."""
    before = gbs(function=FACTORY_FUNCTION)
    function = {'function_uuid': FACTORY_FUNCTION, 'function_name': None}
    images = [
        (image(), gbs()),
        (image(before, id=FACTORY_IMAGE, properties=function), before),
    ]
    group = {'accel:bitstream_id': IMAGE_ID}
    return Scenario(LOADING['Intel FPGA'], number=1, group=group, images=images)


def xilinx() -> Scenario:
    """Return a scenario whose card has two functions and no previous bitstream."""
    content = xclbin(XILINX_INTERFACE, OTHER_FUNCTION)
    attributes = {
        'vendor': 'xilinx',
        'board': 'u250',
        'version': '4.1',
        'shell_id': XILINX_INTERFACE,
        'region_uuid': None,
    }
    images = [(image(content, properties=attributes), content)]
    group = {'accel:bitstream_id': IMAGE_ID}
    return Scenario(LOADING['Xilinx FPGA'], number=1, group=group, images=images)


@pytest.mark.parametrize('check', CRASH_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize('trial', [intel(), xilinx()], ids=['Intel', 'Xilinx'])
def test_bind_with_programming_survives_crashes(
    check: Check, trial: Scenario, tmp_path: Path
) -> None:
    check(trial, tmp_path)


@pytest.mark.parametrize('check', CRASH_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    'trial',
    [
        Scenario(build_bench(Plain)),
        loading(Plain),
        Scenario(LOOKING['fake']),
        Scenario(PREPARING['mdevs']),
        Scenario(PREPARING['types of virtual functions'], number=1),
    ],
    ids=['plain', 'loading', 'passthrough', 'mdevs', 'virtual functions'],
)
def test_correct_driver_survives_crashes(
    check: Check, trial: Scenario, tmp_path: Path
) -> None:
    check(trial, tmp_path)


class Once(Plain):
    """Driver that raises if a handle is already prepared."""

    def prepare(self, handle: AllocatedHandle) -> None:
        if self.is_made(handle):
            raise DriverError(reason='it is there already')
        super().prepare(handle)


class Forgetful(Plain):
    """Driver that keeps the state of its preparations in the process only."""

    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self.created_uuids: set[str] = set()

    def prepare(self, handle: AllocatedHandle) -> None:
        self.created_uuids.add(handle.uuid)
        super().prepare(handle)

    def release(self, handle: AllocatedHandle) -> None:
        if handle.uuid in self.created_uuids:
            super().release(handle)


class Strict(Plain):
    """Driver that raises if a handle to release does not exist."""

    def release(self, handle: AllocatedHandle) -> None:
        if not self.is_made(handle):
            raise DriverError(reason='it is not there')
        super().release(handle)


class Trusting(Plain):
    """Driver that loads in two halves and takes the first for a complete load."""

    def program(self, deployable: str, image: Path, bitstream: Bitstream) -> Device:
        if not self.host.has('begun'):
            self.write('begun', 'yes')
            self.write('function', bitstream.function_id)
        return self.device()


@pytest.mark.parametrize(
    ('trial', 'check', 'words'),
    [
        (Scenario(build_bench(Once)), 0, 'ed/0: ARQs are BindFailed .*it is there'),
        (Scenario(build_bench(Forgetful)), 0, 'is not released as without a crash'),
        (Scenario(build_bench(Strict)), 1, 'do not end: release: .*it is not there'),
        (loading(Trusting), 0, 'write to begun: the host is not prepared'),
    ],
    ids=['once', 'forgetful', 'strict', 'trusting'],
)
def test_wrong_driver_is_detected(
    trial: Scenario, check: int, words: str, tmp_path: Path
) -> None:
    with pytest.raises(ConformanceError, match=words):
        CRASH_CHECKS[check](trial, tmp_path)


def test_driver_without_devices_is_detected(tmp_path: Path) -> None:
    with pytest.raises(ConformanceError, match='offers no device'):
        CRASH_CHECKS[0](Scenario(LOOKING['Inspur FPGA']), tmp_path)
