# SPDX-License-Identifier: Apache-2.0
"""Tests of loading bitstreams into FPGA cards, with emulated tools."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cyborg_lite.drivers.fpga.intel import IntelFpga
from cyborg_lite.drivers.fpga.loading import ProgrammableFpgaDriver
from cyborg_lite.drivers.fpga.xilinx import XilinxFpga
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.bitstreams import BitstreamRefused, LoadingFailed
from cyborg_lite.errors.drivers import DeviceBusy, DeviceGone, DriverError
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.devices.cleaning import LOGIC_STEP
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import CleaningPolicy, Device
from tests.builders.bitstream_files import OTHER_FUNCTION, bitstream, gbs, xclbin
from tests.hosts import kernel_regions
from tests.hosts.kernel import FakeKernel
from tests.hosts.kernel_regions import LoadOutcome
from tests.hosts.pci_links import bind_driver
from tests.hosts.scans import build_handles, find_device

_TRAIT = f'CUSTOM_FPGA_FUNCTION_ID_INTEL_{OTHER_FUNCTION.upper()}'
_XCLBIN = 'aa' * 16
_INTERFACE = 'cec91e5efe5a3c9b3e2a0b0e3b6a2c11'


_OPTIONS = {
    'offer_without_reset': False,
    'offer_management_function': True,
    'program_timeout': 60,
    'tool': 'fpgaconf',
}
_XILINX_TOOLS = {'tool': 'xbutil', 'shell_tool': 'xbmgmt'}


class Bench:
    """A host with a card and a file to load."""

    def __init__(self, kernel: FakeKernel, address: str, content: bytes) -> None:
        self.host = Host('compute-1', kernel.root, kernel)
        self.regions = kernel.regions
        self.address = address
        self.image = kernel.root / 'cached-image'
        self.image.write_bytes(content)
        self.directory = (kernel.root / 'sys/bus/pci/devices' / address).resolve()
        self.name = f'compute-1_{address}'
        self.driver: ProgrammableFpgaDriver = IntelFpga(self.host, _OPTIONS)

    # Any: fields of an image.
    def program(self, **changes: Any) -> Device:
        properties = bitstream(self.image.read_bytes(), **changes)
        return self.driver.program(self.name, self.image, properties)

    @property
    def device(self) -> Device:
        return find_device(self.driver, self.address)


@pytest.fixture
def intel(tmp_path: Path) -> Bench:
    return Bench(FakeKernel('fpga-intel', tmp_path), '0000:5e:00.0', gbs())


@pytest.fixture
def unreadable(tmp_path: Path) -> Bench:
    """Return a card whose port is a virtual function and cannot be read."""
    return Bench(FakeKernel('fpga-intel', tmp_path), '0000:be:00.0', gbs())


@pytest.fixture
def xilinx(tmp_path: Path) -> Bench:
    kernel = FakeKernel('fpga-xilinx-u250', tmp_path)
    bench = Bench(kernel, '0000:d8:00.0', xclbin(_INTERFACE, _XCLBIN))
    bench.driver = XilinxFpga(bench.host, {**_OPTIONS, **_XILINX_TOOLS})
    return bench


_FOR_XILINX = {'function_uuid': _XCLBIN, 'region_uuid': None}


def test_program_returns_device_read_back(intel: Bench) -> None:
    device = intel.program()
    assert device.root.attributes[bitstreams.FUNCTION] == OTHER_FUNCTION
    assert [t for t in device.root.traits if 'FUNCTION' in t] == [_TRAIT]
    assert intel.device == device


def test_program_intel_command_has_full_address(intel: Bench) -> None:
    intel.program()
    (command,) = intel.regions.commands
    location = '--segment 0x0000 -B 0x5e -D 0x00 -F 0x0'
    assert ' '.join(command) == f'fpgaconf {location} {intel.image}'


def test_program_xilinx_command_names_user_function(xilinx: Bench) -> None:
    device = xilinx.program(properties=_FOR_XILINX)
    (command,) = xilinx.regions.commands
    assert command == [
        'xbutil',
        'program',
        '--device',
        '0000:d8:00.1',
        '--user',
        str(xilinx.image),
    ]
    assert device.root.attributes[bitstreams.FUNCTION] == _XCLBIN


def test_program_other_build_is_loaded(intel: Bench) -> None:
    intel.program()
    intel.image.write_bytes(gbs() + b'better')
    intel.program()
    intel.program()
    assert len(intel.regions.commands) == 2


def test_program_after_failure_loads_again(intel: Bench) -> None:
    intel.program()
    intel.regions.outcome = LoadOutcome.TIMEOUT
    intel.image.write_bytes(gbs() + b'better')
    with pytest.raises(LoadingFailed, match='timed out after 60 s'):
        intel.program()
    # The card shows the expected id although its content is unknown.
    intel.regions.outcome = LoadOutcome.SUCCESS
    kernel_regions.show(intel.directory, OTHER_FUNCTION)
    intel.program()
    assert len(intel.regions.commands) == 3


def test_program_unreadable_port_accepts_kernel_status(unreadable: Bench) -> None:
    """The port cannot be read, so the status of the kernel is sufficient."""
    device = unreadable.program()
    assert _TRAIT in device.root.traits
    assert _TRAIT in unreadable.device.root.traits
    assert '-F 0x0' in ' '.join(unreadable.regions.commands[0])


def test_program_unfinished_load_raises_loading_failed(
    unreadable: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tool succeeds, and the port cannot be read."""
    (state,) = unreadable.directory.rglob('fpga_manager/fpga*/state')

    def stop_in_the_middle(*_: object) -> tuple[int, str]:
        state.write_text('write\n')
        return 0, ''

    monkeypatch.setattr(unreadable.regions, 'load', stop_in_the_middle)
    with pytest.raises(LoadingFailed, match='write'):
        unreadable.program()


@pytest.mark.parametrize(
    ('content', 'properties', 'reason'),
    [
        (b'GIF89a', {}, 'The file is not a GBS.'),
        (gbs()[:30], {}, 'ends within its metadata'),
        (gbs(clusters=2), {}, 'The GBS has 2 functions instead of one.'),
        (gbs(interface='ab' * 16), {}, f'It is for interface {"ab" * 16}'),
        (gbs(function='cd' * 16), {}, f'The file contains function {"cd" * 16}'),
        (gbs(), {'shell_id': None}, 'It is a shell'),
    ],
)
def test_program_unfit_file_is_refused(
    content: bytes, properties: dict[str, str], reason: str, intel: Bench
) -> None:
    before = intel.device
    intel.image.write_bytes(content)
    with pytest.raises(BitstreamRefused) as caught:
        intel.program(properties=properties)
    assert reason in caught.value.text
    assert intel.regions.commands == []
    assert intel.device == before


@pytest.mark.parametrize(
    ('interface', 'platform', 'fits'),
    [
        (_INTERFACE, 'whatever', True),
        ('ab' * 16, 'xilinx_u250_gen3x16_xdma_shell_4_1', False),
        ('', 'xilinx:u250:gen3x16_xdma_shell:4.1', True),
        ('', 'xilinx_u200_gen3x16_xdma_shell_4_1', False),
    ],
)
def test_program_compares_interface_or_platform_name(
    interface: str, platform: str, fits: bool, xilinx: Bench
) -> None:
    xilinx.image.write_bytes(xclbin(interface, _XCLBIN, platform))
    if fits:
        xilinx.program(properties=_FOR_XILINX)
    else:
        with pytest.raises(BitstreamRefused):
            xilinx.program(properties=_FOR_XILINX)
    assert len(xilinx.regions.commands) == int(fits)


def test_program_tool_failure_without_change_raises(intel: Bench) -> None:
    before = intel.device
    intel.regions.outcome = LoadOutcome.REFUSED
    with pytest.raises(DriverError, match='nothing changed: exit status 1') as caught:
        intel.program()
    assert not isinstance(caught.value, LoadingFailed)
    assert intel.device == before
    # A client must not read the path.
    assert str(intel.host.root) not in caught.value.text
    assert 'Error opening bitstream file the file' in caught.value.text


def test_program_removed_card_raises(intel: Bench) -> None:
    intel.regions.outcome = LoadOutcome.VANISHED
    with pytest.raises(LoadingFailed):
        intel.program()
    with pytest.raises(DeviceGone):
        intel.program()


def test_discover_during_load_returns_last_result(
    intel: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, load = intel.device, intel.regions.load
    devices = []

    def load_slowly(tool: str, arguments: Sequence[str]) -> tuple[int | None, str]:
        kernel_regions.half_load(intel.directory)
        devices.append(intel.device)
        return load(tool, arguments)

    monkeypatch.setattr(intel.regions, 'load', load_slowly)
    intel.program()
    assert devices == [before]
    assert intel.device != before


def test_program_card_with_guest_raises(xilinx: Bench) -> None:
    assert xilinx.device  # the last scan with a readable card
    bind_driver(xilinx.host, '0000:d8:00.1', 'vfio-pci')
    (xilinx.directory / 'interface_uuids').write_text(_INTERFACE)
    with pytest.raises(DriverError):
        xilinx.program(properties=_FOR_XILINX)
    assert xilinx.regions.commands == []


def test_program_card_used_by_host_raises_busy(xilinx: Bench) -> None:
    user = xilinx.directory.with_name('0000:d8:00.1')
    (user / 'kdsstat').write_text('contexts:\t\t1\n')
    with pytest.raises(DeviceBusy, match='a process of the host'):
        xilinx.program(properties=_FOR_XILINX)


@pytest.mark.parametrize('name', ['compute-1_0000:5e:00.0_region7', 'compute-1_x'])
def test_program_unknown_region_raises(name: str, intel: Bench) -> None:
    intel.name = name
    with pytest.raises(DriverError):
        intel.program()
    assert intel.regions.commands == []


def install_module(bench: Bench, name: str, version: str) -> None:
    module = bench.host.root / 'sys/module' / name
    module.mkdir(parents=True, exist_ok=True)
    (module / 'version').write_text(f'{version}\n')


@pytest.mark.parametrize(
    ('properties', 'reason'),
    [
        ({'type': 'xclbin'}, 'type xclbin is unknown; the card loads gbs.'),
        (
            {'driver': 'xocl'},
            'driver xocl is unknown; the card has dfl-pci, intel-fpga-pci.',
        ),
        (
            {'driver': 'dfl_pci', 'driver_ver': '2.10'},
            'needs version 2.10 of driver dfl-pci; the host has 2.9.1.',
        ),
        (
            {'driver_ver': '3', 'driver_path': 'intel-fpga'},
            'the host has 2.9.1. Set-up role intel-fpga installs it.',
        ),
    ],
)
def test_program_without_handler_is_refused(
    properties: dict[str, str], reason: str, intel: Bench
) -> None:
    install_module(intel, 'dfl_pci', '2.9.1')
    options = {**_OPTIONS, 'setup_roles': ['intel-fpga']}
    intel.driver = IntelFpga(intel.host, options)
    with pytest.raises(BitstreamRefused, match=reason.replace('.', r'\.')):
        intel.program(properties=properties)
    assert intel.regions.commands == []


def test_program_accepts_handler_of_card(intel: Bench) -> None:
    install_module(intel, 'dfl_pci', '2.9.1')
    intel.program(properties={'type': 'GBS', 'driver': 'DFL-PCI', 'driver_ver': '2.9'})
    assert len(intel.regions.commands) == 1


def test_discover_reports_handlers(xilinx: Bench) -> None:
    install_module(xilinx, 'xocl', '2.14.384')
    attributes = xilinx.device.root.attributes
    assert attributes[bitstreams.TYPES] == 'xclbin xsabin'
    assert attributes[bitstreams.DRIVERS] == 'xocl=2.14.384 xclmgmt=5.15.0-91-generic'
    assert bitstreams.SETUP_ROLES not in attributes


def test_driver_version_is_that_of_kernel(intel: Bench) -> None:
    drivers = intel.device.root.attributes[bitstreams.DRIVERS]
    release = (intel.host.root / 'proc/sys/kernel/osrelease').read_text().strip()
    assert drivers == f'dfl-pci={release} intel-fpga-pci={release}'
    (intel.host.root / 'sys/module/dfl_pci/taint').write_text('OE\n')
    drivers = intel.device.root.attributes[bitstreams.DRIVERS]
    assert drivers == f'intel-fpga-pci={release} dfl-pci'


_SHELL = 'bb' * 16
_A_SHELL = {'function_uuid': _SHELL, 'region_uuid': None, 'shell_id': None}


def test_program_shell_uses_management_function(xilinx: Bench) -> None:
    xilinx.image.write_bytes(xclbin('', _SHELL))
    device = xilinx.program(properties=_A_SHELL)
    (command,) = xilinx.regions.commands
    arguments = f'program --device 0000:d8:00.0 --shell {xilinx.image}'
    assert ' '.join(command) == f'xbmgmt {arguments}'
    assert _SHELL in device.root.attributes[bitstreams.SHELL].split()
    assert bitstreams.FUNCTION not in device.root.attributes
    assert xilinx.program(properties=_A_SHELL) == device
    assert len(xilinx.regions.commands) == 1


def test_program_other_shell_raises_loading_failed(xilinx: Bench) -> None:
    xilinx.image.write_bytes(xclbin('', _SHELL))
    xilinx.regions.outcome = LoadOutcome.WRONG_ID
    with pytest.raises(LoadingFailed):
        xilinx.program(properties=_A_SHELL)


# --- cleaning ---


def build_cleaning_bench(bench: Bench, blank: str) -> AllocatedHandle:
    """Give the driver a blank bitstream; return the handle of the card."""
    options = {**_OPTIONS, 'cleaning': 'after-use', 'blank_bitstream': blank}
    bench.driver = IntelFpga(bench.host, options)
    assert bench.device.root.handles[0].cleaning is CleaningPolicy.AFTER_USE
    return build_handles(bench.device)[0]


def test_cleaning_run_loads_blank_bitstream(intel: Bench) -> None:
    handle = build_cleaning_bench(intel, str(intel.image))
    steps = [step.name for step in intel.driver.list_clean_steps(handle)]
    assert steps == ['blank', 'reset']
    proof = intel.driver.run_clean_step(handle, 'blank', threading.Event())
    assert proof == f'function {OTHER_FUNCTION}'
    assert _TRAIT in intel.device.root.traits


def test_cleaning_run_without_blank_bitstream_marks_logic(intel: Bench) -> None:
    handle = build_cleaning_bench(intel, '')
    (step,) = intel.driver.list_clean_steps(handle)
    assert step.name == LOGIC_STEP
    intel.driver.run_clean_step(handle, LOGIC_STEP, threading.Event())
    assert intel.regions.commands == []


def test_blank_bitstream_of_other_card_is_refused(intel: Bench) -> None:
    intel.image.write_bytes(gbs(interface='ab' * 16))
    handle = build_cleaning_bench(intel, str(intel.image))
    with pytest.raises(DriverError, match='does not fit'):
        intel.driver.run_clean_step(handle, 'blank', threading.Event())
    assert intel.regions.commands == []


def test_missing_blank_bitstream_fails(intel: Bench) -> None:
    intel.image.unlink()
    handle = build_cleaning_bench(intel, str(intel.image))
    with pytest.raises(DriverError, match='cannot be read'):
        intel.driver.run_clean_step(handle, 'blank', threading.Event())
