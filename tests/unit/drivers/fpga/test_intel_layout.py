# SPDX-License-Identifier: Apache-2.0
"""Tests of reading the shell and the ports of Intel FPGA cards."""

from pathlib import Path
from typing import Final

import pytest

from cyborg_lite.drivers.fpga.intel_layout import IntelShell, read_shell
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from tests.hosts import sysfs_tree
from tests.hosts.pci_links import find_directory
from tests.hosts.sysfs_device import Plug

_ON_CARD, _ON_VIRTUAL = '0000:5e:00.0', '0000:be:00.0'
_NEW: Final = '0000:01:00.0'


@pytest.fixture
def host(tmp_path: Path) -> Host:
    sysfs_tree.build('fpga-intel', tmp_path)
    return Host('compute-1', tmp_path)


def _read(host: Host, address: str) -> IntelShell:
    shell = read_shell(PciFunction(host, address))
    assert shell is not None
    return shell


def _write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(f'{text}\n')


def test_read_shell_vf_driver_shows_loaded_function(host: Host) -> None:
    """A virtual function that is not in a guest has a port of its own."""
    virtual = find_directory(host, '0000:be:00.1')
    _write(virtual, {'fpga_region/region4/dfl-port.4/afu_id': 'AB' * 16})
    (port,) = _read(host, _ON_VIRTUAL).ports
    assert (port.function_id, port.is_readable) == ('ab' * 16, True)


def test_read_shell_regions_are_in_numeric_order(host: Host, plug: Plug) -> None:
    """Region 10 follows region 9; the port says which region it has."""
    directory = plug(_NEW, ('8086', '0b30'), **{'class': '120000'})
    base = 'fpga_region/region0'
    regions = {
        f'{base}/dfl-fme.0/dfl-fme-region.{n}/fpga_region/region{n}/compat_id': text
        for n, text in ((10, 'cd' * 16), (9, 'ab' * 16))
    }
    ports = {f'{base}/dfl-port.7/id': '1', f'{base}/dfl-port.7/afu_id': 'ef' * 16}
    _write(directory, {**regions, **ports})
    first, second = _read(host, _NEW).ports
    assert (first.interface_id, first.is_readable) == ('ab' * 16, False)
    assert (second.interface_id, second.function_id) == ('cd' * 16, 'ef' * 16)


@pytest.mark.parametrize(
    ('state', 'status', 'fault'),
    [
        ('operating', '', ''),
        ('power up', '', ''),
        ('write error', 'reconfig CRC\nerror', 'write error: reconfig CRC error'),
        ('operating', 'reconfig fifo overflow error', None),
        ('write init', '', 'write init'),
    ],
)
def test_read_shell_manager_error_is_fault(
    state: str, status: str, fault: str | None, host: Host
) -> None:
    fme = find_directory(host, _ON_CARD) / 'fpga_region/region0/dfl-fme.0'
    manager = 'dfl-fme-mgr.0/fpga_manager/fpga0'
    _write(fme, {f'{manager}/state': state, f'{manager}/status': status})
    (port,) = _read(host, _ON_CARD).ports
    assert port.fault == (f'{state}: {status}' if fault is None else fault)


@pytest.mark.parametrize(
    ('identity', 'version'),
    [
        ('0x113000200000177', '1.1.3'),
        ('0x0123000000000000', '1.2.3'),
        ('0xffffffffffffffffff', ''),
        ('unknown', ''),
    ],
)
def test_read_shell_version_is_upper_16_bits(
    identity: str, version: str, host: Host
) -> None:
    fme = find_directory(host, _ON_CARD) / 'fpga_region/region0/dfl-fme.0'
    _write(fme, {'bitstream_id': identity})
    assert _read(host, _ON_CARD).version == version


def test_read_shell_opae_without_port_assumes_first_vf(host: Host, plug: Plug) -> None:
    directory = plug(_NEW, ('8086', '09c4'), **{'class': '120000'})
    virtual = plug('0000:01:00.1', ('8086', '09c5'), **{'class': '120000'})
    (directory / 'virtfn0').symlink_to(virtual)
    fme = 'fpga/intel-fpga-dev.0/intel-fpga-fme.0'
    _write(directory, {f'{fme}/pr/interface_id': 'ab' * 16})
    (port,) = _read(host, _NEW).ports
    assert (port.vf_address, port.interface_id) == ('0000:01:00.1', 'ab' * 16)
    assert not port.is_readable
