# SPDX-License-Identifier: Apache-2.0
"""A bitstream is loaded and read back, or the card is said to be what it is."""

from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.drivers.base import Programmable
from cyborg_lite.drivers.fpga_loading import LoadingFpgaDriver
from cyborg_lite.drivers.intel_fpga import IntelFpga
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.drivers.xilinx_fpga import XilinxFpga
from cyborg_lite.exceptions import (
    BitstreamRefused,
    DeviceBusy,
    DeviceGone,
    DriverError,
    LoadingFailed,
)
from cyborg_lite.model import bitstreams
from cyborg_lite.model.inventory import Health
from tests.fakes import sysfs_tree
from tests.fakes.bitstream_files import (
    ARRIA10_REGION,
    OTHER_FUNCTION,
    bitstream,
    gbs,
    xclbin,
)
from tests.fakes.host_tools import FakeTool
from tests.fakes.kernel_regions import Fate

_TRAIT = f'CUSTOM_FPGA_FUNCTION_ID_INTEL_{OTHER_FUNCTION.upper()}'
_XCLBIN = 'aa' * 16
_INTERFACE = 'cec91e5efe5a3c9b3e2a0b0e3b6a2c11'


class Bench:
    """A host with a card, a tool for it and a file to load."""

    def __init__(self, host: Host, address: str, content: bytes) -> None:
        self.host = host
        self.address = address
        self.image = host.root / 'cached-image'
        self.image.write_bytes(content)
        self.directory = (host.root / 'sys/bus/pci/devices' / address).resolve()
        self.name = f'compute-1_{address}'
        self.driver: LoadingFpgaDriver
        self.tool: FakeTool

    # Any: fields of an image.
    def program(self, **changes: Any) -> Any:
        wanted = bitstream(self.image.read_bytes(), **changes)
        return self.driver.program(self.name, self.image, wanted)

    @property
    def offered(self) -> Any:
        (found,) = (f for f in self.driver.discover() if f.address == self.address)
        return found.device


_OPTIONS = {'offer_without_reset': False, 'program_timeout': 60}


@pytest.fixture
def intel(host: Host) -> Bench:
    sysfs_tree.build('fpga-intel', host.root)
    bench = Bench(host, '0000:5e:00.0', gbs())
    region = bench.directory / 'fpga_region/region0'
    bench.tool = FakeTool(
        region / 'dfl-port.0/afu_id',
        region / 'dfl-fme.0/dfl-fme-mgr.0/fpga_manager/fpga0',
        OTHER_FUNCTION,
    ).on_device(bench.directory)
    bench.driver = IntelFpga(host, {**_OPTIONS, 'tool': 'fpgaconf'}, bench.tool)
    return bench


@pytest.fixture
def xilinx(host: Host) -> Bench:
    sysfs_tree.build('fpga-xilinx-u250', host.root)
    bench = Bench(host, '0000:d8:00.0', xclbin(_INTERFACE, _XCLBIN))
    user = bench.directory.with_name('0000:d8:00.1')
    manager = bench.directory / 'fmgr.m.55296/fpga_manager/fpga0'
    bench.tool = FakeTool(user / 'xclbinuuid', manager, _XCLBIN)
    bench.tool.on_device(bench.directory)
    tools = {'tool': 'xbutil', 'shell_tool': 'xbmgmt'}
    bench.driver = XilinxFpga(host, {**_OPTIONS, **tools}, bench.tool)
    return bench


_FOR_XILINX = {'function_uuid': _XCLBIN, 'region_uuid': None}


def test_drivers_with_a_tool_are_programmable(intel: Bench, xilinx: Bench) -> None:
    assert isinstance(intel.driver, Programmable)
    assert isinstance(xilinx.driver, Programmable)


def test_a_loaded_function_is_what_the_hardware_shows(intel: Bench) -> None:
    device = intel.program()
    assert device.root.attributes[bitstreams.FUNCTION] == OTHER_FUNCTION
    assert [t for t in device.root.traits if 'FUNCTION' in t] == [_TRAIT]
    assert intel.offered == device
    assert intel.tool.timeouts == [60]


def test_the_physical_function_is_programmed_by_its_whole_address(
    intel: Bench,
) -> None:
    intel.program()
    (command,) = intel.tool.commands
    where = '--segment 0x0000 -B 0x5e -D 0x00 -F 0x0'
    assert ' '.join(command) == f'fpgaconf {where} {intel.image}'


def test_the_user_function_is_programmed_and_no_flash_written(xilinx: Bench) -> None:
    device = xilinx.program(properties=_FOR_XILINX)
    (command,) = xilinx.tool.commands
    assert command == [
        'xbutil',
        'program',
        '--device',
        '0000:d8:00.1',
        '--user',
        str(xilinx.image),
    ]
    assert device.root.attributes[bitstreams.FUNCTION] == _XCLBIN


def test_what_is_loaded_already_is_not_loaded_again(intel: Bench) -> None:
    first = intel.program()
    assert intel.program() == first
    assert len(intel.tool.commands) == 1


def test_another_build_of_the_same_function_is_loaded(intel: Bench) -> None:
    intel.program()
    intel.image.write_bytes(gbs() + b'better')
    intel.program()
    intel.program()
    assert len(intel.tool.commands) == 2


def test_after_a_load_that_failed_what_the_card_shows_is_not_enough(
    intel: Bench,
) -> None:
    intel.program()
    intel.tool.fate = Fate.TIMEOUT
    intel.image.write_bytes(gbs() + b'better')
    with pytest.raises(LoadingFailed):
        intel.program()
    # As a card may that lies.
    intel.tool.fate = Fate.SUCCESS
    intel.tool._show(OTHER_FUNCTION)
    intel.program()
    assert len(intel.tool.commands) == 3


def test_a_port_that_a_guest_will_get_is_loaded_through_the_card(
    host: Host, intel: Bench
) -> None:
    """Nothing can be read through it: the kernel's word that it is done must do."""
    bench = Bench(host, '0000:be:00.0', gbs())
    fme = bench.directory / 'fpga_region/region2/dfl-fme.1'
    manager = fme / 'dfl-fme-mgr.1/fpga_manager/fpga1'
    bench.tool = FakeTool(Path('/nonexistent'), manager, OTHER_FUNCTION)
    bench.driver = IntelFpga(host, {**_OPTIONS, 'tool': 'fpgaconf'}, bench.tool)
    device = bench.program()
    assert _TRAIT in device.root.traits
    assert _TRAIT in bench.offered.root.traits
    assert '-F 0x0' in ' '.join(bench.tool.commands[0])


def test_a_load_that_does_not_come_to_its_end_has_failed(
    host: Host, intel: Bench
) -> None:
    """Though the tool says that it went well, and nothing else can be read."""
    bench = Bench(host, '0000:be:00.0', gbs())
    manager = bench.directory / 'fpga_region/region2/dfl-fme.1/dfl-fme-mgr.1'
    state = manager / 'fpga_manager/fpga1/state'
    bench.tool = FakeTool(Path('/nonexistent'), None, OTHER_FUNCTION)

    def stop_in_the_middle() -> None:
        state.write_text('write\n')

    bench.tool.meanwhile = stop_in_the_middle
    bench.driver = IntelFpga(host, {**_OPTIONS, 'tool': 'fpgaconf'}, bench.tool)
    with pytest.raises(LoadingFailed, match='write'):
        bench.program()


@pytest.mark.parametrize(
    ('content', 'properties', 'reason'),
    [
        (b'GIF89a', {}, 'The file is no GBS.'),
        (gbs()[:30], {}, 'ends within its metadata'),
        (gbs(clusters=2), {}, 'The GBS has 2 functions, not one.'),
        (gbs(interface='ab' * 16), {}, f'interface {"ab" * 16}, not {ARRIA10_REGION}'),
        (gbs(function='cd' * 16), {}, f'The file holds function {"cd" * 16}'),
        (gbs(), {'shell_id': None}, 'It is a shell'),
    ],
)
def test_a_file_that_does_not_fit_never_reaches_the_card(
    content: bytes, properties: dict[str, str], reason: str, intel: Bench
) -> None:
    before = intel.offered
    intel.image.write_bytes(content)
    with pytest.raises(BitstreamRefused) as caught:
        intel.program(properties=properties)
    assert reason in caught.value.text
    assert intel.tool.commands == []
    assert intel.offered == before


@pytest.mark.parametrize(
    ('interface', 'platform', 'fits'),
    [
        (_INTERFACE, 'whatever', True),
        ('ab' * 16, 'xilinx_u250_gen3x16_xdma_shell_4_1', False),
        ('', 'xilinx:u250:gen3x16_xdma_shell:4.1', True),
        ('', 'xilinx_u200_gen3x16_xdma_shell_4_1', False),
    ],
)
def test_a_shell_is_known_by_its_interface_or_by_its_name(
    interface: str, platform: str, fits: bool, xilinx: Bench
) -> None:
    xilinx.image.write_bytes(xclbin(interface, _XCLBIN, platform))
    if fits:
        xilinx.program(properties=_FOR_XILINX)
    else:
        with pytest.raises(BitstreamRefused):
            xilinx.program(properties=_FOR_XILINX)
    assert len(xilinx.tool.commands) == int(fits)


def test_a_tool_that_fails_and_changes_nothing_leaves_the_card_in_use(
    intel: Bench,
) -> None:
    before = intel.offered
    intel.tool.fate = Fate.REFUSED
    with pytest.raises(DriverError, match='nothing changed: exit status 1') as caught:
        intel.program()
    assert not isinstance(caught.value, LoadingFailed)
    assert intel.offered == before


def test_the_word_of_the_tool_alone_is_not_believed(intel: Bench) -> None:
    intel.tool.fate = Fate.WRONG_ID
    with pytest.raises(LoadingFailed, match='shows function 0123456789abcdef'):
        intel.program()


def test_a_half_loaded_region_is_closed_with_the_reason(intel: Bench) -> None:
    intel.tool.fate = Fate.HALF_LOADED
    with pytest.raises(LoadingFailed, match='reconfig CRC error'):
        intel.program()
    device = intel.offered
    assert device.health is Health.DEGRADED
    assert device.root.reserved == device.root.total == 1


def test_a_half_loaded_region_can_be_loaded_again(intel: Bench) -> None:
    intel.tool.fate = Fate.HALF_LOADED
    with pytest.raises(LoadingFailed):
        intel.program()
    intel.tool.fate = Fate.SUCCESS
    device = intel.program()
    assert (device.health, device.root.reserved) == (Health.OK, 0)


def test_after_a_timeout_nobody_knows_what_is_loaded(intel: Bench) -> None:
    intel.tool.fate = Fate.TIMEOUT
    with pytest.raises(LoadingFailed, match='did not end in 60 seconds'):
        intel.program()


def test_a_card_that_vanishes_is_a_failure(intel: Bench) -> None:
    intel.tool.fate = Fate.VANISHED
    with pytest.raises(LoadingFailed):
        intel.program()
    with pytest.raises(DeviceGone):
        intel.program()


def test_a_missing_tool_is_said_and_nothing_has_happened(intel: Bench) -> None:
    before = intel.offered
    intel.tool.fate = Fate.MISSING
    with pytest.raises(DriverError, match='fpgaconf is not installed'):
        intel.program()
    assert intel.offered == before


def test_while_it_is_loaded_a_card_is_reported_as_it_was(intel: Bench) -> None:
    before = intel.offered
    seen = []

    def look() -> None:
        intel.tool._half_load()
        seen.append(intel.offered)

    intel.tool.meanwhile = look
    intel.program()
    assert seen == [before]
    assert intel.offered != before


def test_a_card_that_a_guest_may_have_is_not_touched(xilinx: Bench) -> None:
    link = xilinx.directory.with_name('0000:d8:00.1') / 'driver'
    link.unlink()
    vfio = xilinx.host.root / 'sys/bus/pci/drivers/vfio-pci'
    vfio.mkdir(parents=True, exist_ok=True)
    assert xilinx.offered  # seen while its driver still told
    link.symlink_to(vfio)
    (xilinx.directory / 'interface_uuids').write_text(_INTERFACE)
    with pytest.raises(DriverError):
        xilinx.program(properties=_FOR_XILINX)
    assert xilinx.tool.commands == []


def test_a_card_whose_contexts_are_in_use_is_busy(xilinx: Bench) -> None:
    user = xilinx.directory.with_name('0000:d8:00.1')
    (user / 'kdsstat').write_text('contexts:\t\t1\n')
    with pytest.raises(DeviceBusy, match='a process of the host'):
        xilinx.program(properties=_FOR_XILINX)


@pytest.mark.parametrize('name', ['compute-1_0000:5e:00.0_region7', 'compute-1_x'])
def test_what_is_no_region_cannot_be_loaded(name: str, intel: Bench) -> None:
    intel.name = name
    with pytest.raises(DriverError):
        intel.program()
    assert intel.tool.commands == []


# --- shells -------------------------------------------------------------------------

_SHELL = 'bb' * 16
_A_SHELL = {'function_uuid': _SHELL, 'region_uuid': None, 'shell_id': None}


def test_a_shell_is_loaded_through_the_management_function(xilinx: Bench) -> None:
    xilinx.image.write_bytes(xclbin('', _SHELL))
    xilinx.tool.loads = _SHELL
    device = xilinx.program(properties=_A_SHELL)
    (command,) = xilinx.tool.commands
    where = f'program --device 0000:d8:00.0 --shell {xilinx.image}'
    assert ' '.join(command) == f'xbmgmt {where}'
    assert _SHELL in device.root.attributes[bitstreams.SHELL].split()
    assert bitstreams.FUNCTION not in device.root.attributes
    assert xilinx.program(properties=_A_SHELL) == device
    assert len(xilinx.tool.commands) == 1


def test_a_shell_that_the_card_does_not_show_was_not_loaded(xilinx: Bench) -> None:
    xilinx.image.write_bytes(xclbin('', _SHELL))
    xilinx.tool.loads = 'cc' * 16
    with pytest.raises(LoadingFailed):
        xilinx.program(properties=_A_SHELL)


def test_where_the_file_lies_is_told_nobody(intel: Bench) -> None:
    intel.tool.fate = Fate.REFUSED
    intel.tool.said = f'Error opening bitstream file {intel.image}'
    with pytest.raises(DriverError) as caught:
        intel.program()
    assert str(intel.host.root) not in caught.value.text
    assert 'Error opening bitstream file the file' in caught.value.text
