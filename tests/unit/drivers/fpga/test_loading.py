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
from cyborg_lite.drivers.host.kernel import PrivilegedKernel
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.bitstreams import BitstreamRefused, LoadingFailed
from cyborg_lite.errors.drivers import DeviceBusy, DeviceGone, DriverError
from cyborg_lite.model.bitstreams import bitstreams
from cyborg_lite.model.devices.cleaning import LOGIC_STEP
from cyborg_lite.model.devices.devices import AllocatedHandle
from cyborg_lite.model.inventory.host_report import CleaningPolicy, Health
from cyborg_lite.testing.preparation_checks import build_handle
from tests.builders.bitstream_files import (
    OTHER_FUNCTION,
    bitstream,
    gbs,
    xclbin,
)
from tests.hosts import sysfs_tree
from tests.hosts.host_tools import FakeTool
from tests.hosts.kernel_regions import LoadOutcome

_TRAIT = f'CUSTOM_FPGA_FUNCTION_ID_INTEL_{OTHER_FUNCTION.upper()}'
_XCLBIN = 'aa' * 16
_INTERFACE = 'cec91e5efe5a3c9b3e2a0b0e3b6a2c11'


class Bench:
    """A host with a card, an emulated tool and a file to load."""

    def __init__(self, host: Host, address: str, content: bytes) -> None:
        self.host = host
        self.address = address
        self.image = host.root / 'cached-image'
        self.image.write_bytes(content)
        self.directory = (host.root / 'sys/bus/pci/devices' / address).resolve()
        self.name = f'compute-1_{address}'
        self.driver: ProgrammableFpgaDriver
        self.tool: FakeTool

    # Any: fields of an image.
    def program(self, **changes: Any) -> Any:
        properties = bitstream(self.image.read_bytes(), **changes)
        return self.driver.program(self.name, self.image, properties)

    @property
    def device(self) -> Any:
        (result,) = (r for r in self.driver.discover() if r.address == self.address)
        return result.device


_OPTIONS = {
    'offer_without_reset': False,
    'offer_management_function': True,
    'program_timeout': 60,
}


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
    bench.driver = IntelFpga(host, {**_OPTIONS, 'tool': 'fpgaconf'})
    bench.driver.run_tool = bench.tool
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
    bench.driver = XilinxFpga(host, {**_OPTIONS, **tools})
    bench.driver.run_tool = bench.tool
    return bench


_FOR_XILINX = {'function_uuid': _XCLBIN, 'region_uuid': None}


def test_program_returns_device_read_back(intel: Bench) -> None:
    device = intel.program()
    assert device.root.attributes[bitstreams.FUNCTION] == OTHER_FUNCTION
    assert [t for t in device.root.traits if 'FUNCTION' in t] == [_TRAIT]
    assert intel.device == device
    assert intel.tool.timeouts == [60]


def test_program_intel_command_has_full_address(intel: Bench) -> None:
    intel.program()
    (command,) = intel.tool.commands
    location = '--segment 0x0000 -B 0x5e -D 0x00 -F 0x0'
    assert ' '.join(command) == f'fpgaconf {location} {intel.image}'


def test_program_xilinx_command_names_user_function(xilinx: Bench) -> None:
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


def test_program_other_build_is_loaded(intel: Bench) -> None:
    intel.program()
    intel.image.write_bytes(gbs() + b'better')
    intel.program()
    intel.program()
    assert len(intel.tool.commands) == 2


def test_program_after_failure_loads_again(intel: Bench) -> None:
    intel.program()
    intel.tool.outcome = LoadOutcome.TIMEOUT
    intel.image.write_bytes(gbs() + b'better')
    with pytest.raises(LoadingFailed):
        intel.program()
    # The card shows the expected id although its content is unknown.
    intel.tool.outcome = LoadOutcome.SUCCESS
    intel.tool._show(OTHER_FUNCTION)
    intel.program()
    assert len(intel.tool.commands) == 3


@pytest.fixture
def unreadable(intel: Bench) -> Bench:
    """Return a card whose port is a virtual function and cannot be read."""
    bench = Bench(intel.host, '0000:be:00.0', gbs())
    fme = bench.directory / 'fpga_region/region2/dfl-fme.1'
    manager = fme / 'dfl-fme-mgr.1/fpga_manager/fpga1'
    bench.tool = FakeTool(Path('/nonexistent'), manager, OTHER_FUNCTION)
    bench.driver = IntelFpga(bench.host, {**_OPTIONS, 'tool': 'fpgaconf'})
    bench.driver.run_tool = bench.tool
    return bench


def test_program_unreadable_port_accepts_kernel_status(unreadable: Bench) -> None:
    """The port cannot be read, so the status of the kernel is sufficient."""
    device = unreadable.program()
    assert _TRAIT in device.root.traits
    assert _TRAIT in unreadable.device.root.traits
    assert '-F 0x0' in ' '.join(unreadable.tool.commands[0])


def test_program_unfinished_load_raises_loading_failed(unreadable: Bench) -> None:
    """The tool succeeds, and the port cannot be read."""
    manager = unreadable.tool._manager
    assert manager is not None
    unreadable.tool._manager = None

    def stop_in_the_middle() -> None:
        (manager / 'state').write_text('write\n')

    unreadable.tool.meanwhile = stop_in_the_middle
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
    assert intel.tool.commands == []
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
    assert len(xilinx.tool.commands) == int(fits)


def test_program_tool_failure_without_change_raises(intel: Bench) -> None:
    before = intel.device
    intel.tool.outcome = LoadOutcome.REFUSED
    with pytest.raises(DriverError, match='nothing changed: exit status 1') as caught:
        intel.program()
    assert not isinstance(caught.value, LoadingFailed)
    assert intel.device == before


@pytest.mark.parametrize(
    ('outcome', 'reason'),
    [
        (LoadOutcome.WRONG_ID, 'shows function 0123456789abcdef'),
        (LoadOutcome.TIMEOUT, 'timed out after 60 s'),
    ],
)
def test_program_unclear_result_raises_loading_failed(
    outcome: LoadOutcome, reason: str, intel: Bench
) -> None:
    intel.tool.outcome = outcome
    with pytest.raises(LoadingFailed, match=reason):
        intel.program()


def test_program_half_loaded_region_is_degraded(intel: Bench) -> None:
    intel.tool.outcome = LoadOutcome.HALF_LOADED
    with pytest.raises(LoadingFailed, match='reconfig CRC error'):
        intel.program()
    device = intel.device
    assert device.health is Health.DEGRADED
    assert device.root.reserved == device.root.total == 1


def test_program_removed_card_raises(intel: Bench) -> None:
    intel.tool.outcome = LoadOutcome.VANISHED
    with pytest.raises(LoadingFailed):
        intel.program()
    with pytest.raises(DeviceGone):
        intel.program()


def test_program_missing_tool_changes_nothing(intel: Bench) -> None:
    before = intel.device
    intel.tool.outcome = LoadOutcome.MISSING
    with pytest.raises(DriverError, match='fpgaconf is not installed'):
        intel.program()
    assert intel.device == before


def test_discover_during_load_returns_last_result(intel: Bench) -> None:
    before = intel.device
    devices = []

    def discover() -> None:
        intel.tool._half_load()
        devices.append(intel.device)

    intel.tool.meanwhile = discover
    intel.program()
    assert devices == [before]
    assert intel.device != before


def test_program_card_with_guest_raises(xilinx: Bench) -> None:
    link = xilinx.directory.with_name('0000:d8:00.1') / 'driver'
    link.unlink()
    vfio = xilinx.host.root / 'sys/bus/pci/drivers/vfio-pci'
    vfio.mkdir(parents=True, exist_ok=True)
    assert xilinx.device  # the last scan with a readable card
    link.symlink_to(vfio)
    (xilinx.directory / 'interface_uuids').write_text(_INTERFACE)
    with pytest.raises(DriverError):
        xilinx.program(properties=_FOR_XILINX)
    assert xilinx.tool.commands == []


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
    assert intel.tool.commands == []


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
    options = {**_OPTIONS, 'tool': 'fpgaconf', 'setup_roles': ['intel-fpga']}
    intel.driver = IntelFpga(intel.host, options)
    intel.driver.run_tool = intel.tool
    with pytest.raises(BitstreamRefused, match=reason.replace('.', r'\.')):
        intel.program(properties=properties)
    assert intel.tool.commands == []


def test_program_accepts_handler_of_card(intel: Bench) -> None:
    install_module(intel, 'dfl_pci', '2.9.1')
    intel.program(properties={'type': 'GBS', 'driver': 'DFL-PCI', 'driver_ver': '2.9'})
    assert len(intel.tool.commands) == 1


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
    xilinx.tool.loads = _SHELL
    device = xilinx.program(properties=_A_SHELL)
    (command,) = xilinx.tool.commands
    arguments = f'program --device 0000:d8:00.0 --shell {xilinx.image}'
    assert ' '.join(command) == f'xbmgmt {arguments}'
    assert _SHELL in device.root.attributes[bitstreams.SHELL].split()
    assert bitstreams.FUNCTION not in device.root.attributes
    assert xilinx.program(properties=_A_SHELL) == device
    assert len(xilinx.tool.commands) == 1


def test_program_other_shell_raises_loading_failed(xilinx: Bench) -> None:
    xilinx.image.write_bytes(xclbin('', _SHELL))
    xilinx.tool.loads = 'cc' * 16
    with pytest.raises(LoadingFailed):
        xilinx.program(properties=_A_SHELL)


def test_program_error_does_not_contain_path(intel: Bench) -> None:
    intel.tool.outcome = LoadOutcome.REFUSED
    intel.tool.output = f'Error opening bitstream file {intel.image}'
    with pytest.raises(DriverError) as caught:
        intel.program()
    assert str(intel.host.root) not in caught.value.text
    assert 'Error opening bitstream file the file' in caught.value.text


# --- cleaning ---


class IdleKernel(PrivilegedKernel):
    """A kernel whose processes have no device open."""

    def holders(self, root: Path, files: Sequence[str]) -> list[int]:
        return []


def build_cleaning_bench(bench: Bench, blank: str) -> AllocatedHandle:
    """Give the driver a blank bitstream; return the handle of the card."""
    options = {**_OPTIONS, 'cleaning': 'after-use', 'blank_bitstream': blank}
    host = Host('compute-1', bench.host.root, IdleKernel())
    bench.driver = IntelFpga(host, {**options, 'tool': 'fpgaconf'})
    bench.driver.run_tool = bench.tool
    root = bench.device.root
    assert root.handles[0].cleaning is CleaningPolicy.AFTER_USE
    return build_handle(bench.device, root, root.handles[0])


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
    assert intel.tool.commands == []


def test_blank_bitstream_of_other_card_is_refused(intel: Bench) -> None:
    intel.image.write_bytes(gbs(interface='ab' * 16))
    handle = build_cleaning_bench(intel, str(intel.image))
    with pytest.raises(DriverError, match='does not fit'):
        intel.driver.run_clean_step(handle, 'blank', threading.Event())
    assert intel.tool.commands == []


def test_missing_blank_bitstream_fails(intel: Bench) -> None:
    intel.image.unlink()
    handle = build_cleaning_bench(intel, str(intel.image))
    with pytest.raises(DriverError, match='cannot be read'):
        intel.driver.run_clean_step(handle, 'blank', threading.Event())
