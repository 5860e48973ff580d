# SPDX-License-Identifier: Apache-2.0
"""Crash checks accept correct drivers and describe the faults of wrong ones."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from oslo_config import cfg

from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.drivers import DriverError
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.bitstreams.bitstreams import Bitstream
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import (
    AttachHandle,
    Deployable,
    Device,
    DiscoveryResult,
    HandleType,
)
from cyborg_lite.testing.cloud import Scenario
from cyborg_lite.testing.crash_checks import CRASH_CHECKS
from cyborg_lite.testing.driver_checks import Bench, ConformanceError
from tests.builders.bitstream_files import (
    ARRIA10_REGION,
    IMAGE_ID,
    OTHER_FUNCTION,
    gbs,
    image,
    xclbin,
)
from tests.builders.fpga_reports import FACTORY as FACTORY_FUNCTION
from tests.doubles.file_driver import ADDRESS, INFO, FileKernel
from tests.hosts.driver_benches import LOADING, LOOKING, PREPARING

Check = Callable[[Scenario, Path], None]

FACTORY = '0' * 32
FACTORY_IMAGE = 'aaaaaaaa-0000-4000-8000-00000000000f'
XILINX_INTERFACE = 'cec91e5efe5a3c9b3e2a0b0e3b6a2c11'
CONTENT = b'XeonFPGA' * 8


class Plain:
    """Correct driver of a programmable card with two handles."""

    NAME: ClassVar[str] = 'plain'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()

    # Any: driver options have various types.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self.host = host

    def discover(self) -> Iterator[DiscoveryResult]:
        yield DiscoveryResult(
            ADDRESS, '8086:09c4', '120000', self.NAME, 'ours', self.device()
        )

    def device(self) -> Device:
        function = self.host.text('function') or FACTORY
        root = Deployable(
            f'{self.host.name}_{ADDRESS}',
            resource_class='FPGA',
            traits=('OWNER_CYBORG', f'CUSTOM_FPGA_FUNCTION_ID_{function.upper()}'),
            total=2,
            handles=tuple(
                AttachHandle(f'{ADDRESS}/{n}', HandleType.PCI, INFO, needs_host=True)
                for n in range(2)
            ),
            attributes={
                bitstreams.VENDOR: '8086 intel',
                bitstreams.BOARD: 'PAC_ARRIA10',
                bitstreams.VERSION: '1.1.3',
                bitstreams.SHELL: '113000200000177',
                bitstreams.REGION: ARRIA10_REGION,
                bitstreams.FUNCTION: function,
                'prepared': ' '.join(sorted(self.host.names('made'))),
            },
        )
        return Device('FPGA', '8086', 'Plain', self.NAME, ADDRESS, ADDRESS, root)

    def prepare(self, handle: AllocatedHandle) -> None:
        self.make(handle)

    def release(self, handle: AllocatedHandle) -> None:
        self.write(self.file(handle), '')

    def program(self, deployable: str, image: Path, bitstream: Bitstream) -> Device:
        assert image.read_bytes() == CONTENT
        self.write('function', bitstream.function_id)
        return self.device()

    def make(self, handle: AllocatedHandle) -> None:
        self.write(self.file(handle), handle.arq_uuid)

    def write(self, path: str, text: str) -> None:
        self.host.kernel.write(self.host.root, path, text)

    @staticmethod
    def file(handle: AllocatedHandle) -> str:
        return f'made/{handle.key.rpartition("/")[2]}'


def bench(kind: type[Plain]) -> Bench:
    def build(root: Path) -> FileKernel:
        (root / 'made').mkdir()
        return FileKernel()

    return Bench(lambda host: kind(host, {}), build)


def loading(kind: type[Plain]) -> Scenario:
    """Return a scenario whose profile names a bitstream in Glance."""
    group = {'accel:bitstream_id': IMAGE_ID}
    return Scenario(
        bench(kind), number=1, group=group, images=[(image(CONTENT), CONTENT)]
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
        Scenario(bench(Plain)),
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
        if self.host.has(self.file(handle)):
            raise DriverError(reason='it is there already')
        self.make(handle)


class Forgetful(Plain):
    """Driver that keeps the state of its preparations in the process only."""

    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self.created_uuids: set[str] = set()

    def prepare(self, handle: AllocatedHandle) -> None:
        self.created_uuids.add(handle.uuid)
        self.make(handle)

    def release(self, handle: AllocatedHandle) -> None:
        if handle.uuid in self.created_uuids:
            super().release(handle)


class Strict(Plain):
    """Driver that raises if a handle to release does not exist."""

    def release(self, handle: AllocatedHandle) -> None:
        if not self.host.has(self.file(handle)):
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
        (Scenario(bench(Once)), 0, 'made/0: ARQs are BindFailed .*it is there'),
        (Scenario(bench(Forgetful)), 0, 'the host is not released as without a crash'),
        (Scenario(bench(Strict)), 1, 'do not end: release: .*it is not there'),
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
