# SPDX-License-Identifier: Apache-2.0
"""Good drivers survive every crash, and what is wrong with bad ones is said."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from oslo_config import cfg

from cyborg_lite.crash_kit.checks import CRASH_CHECKS, Trial
from cyborg_lite.drivers.kit import Bench, Nonconforming
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import DriverError
from cyborg_lite.model import bitstreams
from cyborg_lite.model.bitstreams import Bitstream
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Deployable, Device, Finding, HandleType, Unit
from tests.fakes.bitstream_files import (
    ARRIA10_REGION,
    IMAGE_ID,
    OTHER_FUNCTION,
    gbs,
    image,
    xclbin,
)
from tests.fakes.fpga import FACTORY as FACTORY_FUNCTION
from tests.unit.drivers.benches import LOADING, LOOKING, PREPARING

Check = Callable[[Trial, Path], None]

ADDRESS = '0000:5e:00.0'
FACTORY = '0' * 32
INFO = {'domain': '0000', 'bus': '5e', 'device': '00', 'function': '0'}
FACTORY_IMAGE = 'aaaaaaaa-0000-4000-8000-00000000000f'
XILINX_INTERFACE = 'cec91e5efe5a3c9b3e2a0b0e3b6a2c11'
CONTENT = b'XeonFPGA' * 8


class Files:
    """A kernel in which a change is a file; an empty one is none."""

    def write(self, root: Path, path: str, text: str) -> None:
        if text:
            (root / path).write_text(text)
        else:
            (root / path).unlink(missing_ok=True)

    def run(self, root: Path, tool: str, arguments: Sequence[str]) -> tuple[int, str]:
        raise FileNotFoundError(tool)

    def load(self, command: Sequence[str], seconds: float) -> tuple[int | None, str]:
        raise FileNotFoundError(command[0])

    def holders(self, root: Path, files: Sequence[str]) -> list[int]:
        return []


class Plain:
    """A card with two units that takes bitstreams, and does nothing wrong."""

    NAME: ClassVar[str] = 'plain'
    OPTIONS: ClassVar[Sequence[cfg.Opt]] = ()

    # Any: as the options of drivers are.
    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        self.host = host

    def discover(self) -> Iterator[Finding]:
        yield Finding(ADDRESS, '8086:09c4', '120000', self.NAME, 'ours', self.device())

    def device(self) -> Device:
        function = self.host.text('function') or FACTORY
        root = Deployable(
            f'{self.host.name}_{ADDRESS}',
            resource_class='FPGA',
            traits=('OWNER_CYBORG', f'CUSTOM_FPGA_FUNCTION_ID_{function.upper()}'),
            total=2,
            units=tuple(
                Unit(f'{ADDRESS}/{n}', HandleType.PCI, INFO, needs_host=True)
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

    def prepare(self, handle: HeldHandle) -> None:
        self.make(handle)

    def release(self, handle: HeldHandle) -> None:
        self.write(self.file(handle), '')

    def program(self, deployable: str, image: Path, wanted: Bitstream) -> Device:
        assert image.read_bytes() == CONTENT
        self.write('function', wanted.function_id)
        return self.device()

    def make(self, handle: HeldHandle) -> None:
        self.write(self.file(handle), handle.arq_uuid)

    def write(self, path: str, text: str) -> None:
        self.host.kernel.write(self.host.root, path, text)

    @staticmethod
    def file(handle: HeldHandle) -> str:
        return f'made/{handle.key.rpartition("/")[2]}'


def bench(kind: type[Plain]) -> Bench:
    def build(root: Path) -> Files:
        (root / 'made').mkdir()
        return Files()

    return Bench(lambda host: kind(host, {}), build)


def loading(kind: type[Plain]) -> Trial:
    """A profile that names a bitstream, and a Glance that has it."""
    wanted = {'accel:bitstream_id': IMAGE_ID}
    return Trial(
        bench(kind), number=1, group=wanted, images=[(image(CONTENT), CONTENT)]
    )


def intel() -> Trial:
    """A card that holds the factory's function, which Glance has, too."""
    before = gbs(function=FACTORY_FUNCTION)
    function = {'function_uuid': FACTORY_FUNCTION, 'function_name': None}
    images = [
        (image(), gbs()),
        (image(before, id=FACTORY_IMAGE, properties=function), before),
    ]
    wanted = {'accel:bitstream_id': IMAGE_ID}
    return Trial(LOADING['Intel FPGA'], number=1, group=wanted, images=images)


def xilinx() -> Trial:
    """A card with two functions, and nothing known to go back to."""
    content = xclbin(XILINX_INTERFACE, OTHER_FUNCTION)
    said = {
        'vendor': 'xilinx',
        'board': 'u250',
        'version': '4.1',
        'shell_id': XILINX_INTERFACE,
        'region_uuid': None,
    }
    images = [(image(content, properties=said), content)]
    wanted = {'accel:bitstream_id': IMAGE_ID}
    return Trial(LOADING['Xilinx FPGA'], number=1, group=wanted, images=images)


@pytest.mark.parametrize('check', CRASH_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize('trial', [intel(), xilinx()], ids=['Intel', 'Xilinx'])
def test_a_bind_that_programs_survives(
    check: Check, trial: Trial, tmp_path: Path
) -> None:
    check(trial, tmp_path)


@pytest.mark.parametrize('check', CRASH_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    'trial',
    [
        Trial(bench(Plain)),
        loading(Plain),
        Trial(LOOKING['fake']),
        Trial(PREPARING['mdevs']),
        Trial(PREPARING['types of virtual functions'], number=1),
    ],
    ids=['plain', 'loading', 'passthrough', 'mdevs', 'virtual functions'],
)
def test_a_good_driver_survives(check: Check, trial: Trial, tmp_path: Path) -> None:
    check(trial, tmp_path)


class Once(Plain):
    """Takes what it finds prepared for a mistake."""

    def prepare(self, handle: HeldHandle) -> None:
        if self.host.has(self.file(handle)):
            raise DriverError(reason='it is there already')
        self.make(handle)


class Forgetful(Plain):
    """Remembers in the process alone what it has to undo."""

    def __init__(self, host: Host, options: Mapping[str, Any]) -> None:
        super().__init__(host, options)
        self.made: set[str] = set()

    def prepare(self, handle: HeldHandle) -> None:
        self.made.add(handle.uuid)
        self.make(handle)

    def release(self, handle: HeldHandle) -> None:
        if handle.uuid in self.made:
            super().release(handle)


class Strict(Plain):
    """Cannot release what is not there any more."""

    def release(self, handle: HeldHandle) -> None:
        if not self.host.has(self.file(handle)):
            raise DriverError(reason='it is not there')
        super().release(handle)


class Trusting(Plain):
    """Loads in two halves, and takes the first for the whole when it comes again."""

    def program(self, deployable: str, image: Path, wanted: Bitstream) -> Device:
        if not self.host.has('begun'):
            self.write('begun', 'yes')
            self.write('function', wanted.function_id)
        return self.device()


@pytest.mark.parametrize(
    ('trial', 'check', 'words'),
    [
        (Trial(bench(Once)), 0, 'made/0: requests are BindFailed .*it is there'),
        (Trial(bench(Forgetful)), 0, 'the host is not as a release leaves it'),
        (Trial(bench(Strict)), 1, 'never done: release: .*it is not there'),
        (loading(Trusting), 0, 'write to begun: the host is not prepared'),
    ],
    ids=['once', 'forgetful', 'strict', 'trusting'],
)
def test_a_bad_driver_is_found_out(
    trial: Trial, check: int, words: str, tmp_path: Path
) -> None:
    with pytest.raises(Nonconforming, match=words):
        CRASH_CHECKS[check](trial, tmp_path)


def test_a_driver_that_offers_nothing_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(Nonconforming, match='nothing is offered'):
        CRASH_CHECKS[0](Trial(LOOKING['Inspur FPGA']), tmp_path)
