# SPDX-License-Identifier: Apache-2.0
"""Tests of reading the host: failed reads, links and PCI functions."""

import os
import shutil
import threading
from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import (
    Host,
    PciFunction,
    cached_property,
    pci_address,
)
from tests.hosts import sysfs_tree
from tests.hosts.sysfs_device import Plug


def _function(host: Host, address: str) -> PciFunction:
    return next(item for item in host.pci_functions() if item.address == address)


@pytest.mark.parametrize(
    ('text', 'address'),
    [
        ('0000:3b:00.0', '0000:3b:00.0'),
        ('00000000:3B:00.0', '0000:3b:00.0'),
        ('10000:01:00.0', '10000:01:00.0'),
        ('00010000:01:00.0\n', '10000:01:00.0'),
    ],
)
def test_pci_address_normalizes_text(text: str, address: str) -> None:
    assert pci_address(text) == address


@pytest.mark.parametrize(
    'text',
    ['', '3b:00.0', '0000:3b:00', '0000:3b:00x0', '0000:3b:20.0', '0000:3b:00.8'],
)
def test_pci_address_other_text_returns_none(text: str) -> None:
    assert pci_address(text) is None


def test_host_unreadable_file_returns_none(host: Host) -> None:
    (host.root / 'sys').mkdir()
    (host.root / 'sys/garbled').write_bytes(b'\xff\xfe\x00')
    (host.root / 'sys/word').write_text('many\n')
    (host.root / 'sys/empty').write_text('\n')
    assert host.text('sys/garbled') is None
    assert host.text('sys/empty') is None
    assert host.text('sys/absent') is None
    assert host.text('sys') is None  # a directory
    assert host.raw('sys/absent') is None
    assert host.number('sys/word') is None
    assert host.number('sys/absent') is None


@pytest.mark.parametrize('path', ['sys/text', 'proc/driver/nvidia/gpus/text'])
def test_host_text_is_bounded_and_printable(path: str, host: Host) -> None:
    file = host.root / path
    file.parent.mkdir(parents=True)
    file.write_bytes(b'a\x00\x07\x1b[31mb\xe2\x80\xae\r\n' + b'x' * 129 + b'\nc\n')
    assert host.text(path) == 'a[31mb\nc'
    file.write_bytes(b'1\n' * 40_000)
    assert host.text(path) is None
    os.truncate(file, 10_000_000)
    assert host.text(path) is None


def test_host_text_keeps_long_lines_of_mounts(host: Host) -> None:
    (host.root / 'proc').mkdir()
    line = '/dev/nvme0n1p1 / ext4 ' + 'x' * 1000
    (host.root / 'proc/mounts').write_text(f'{line}\n' * 200)
    assert host.text('proc/mounts') == '\n'.join([line] * 200)


@pytest.mark.parametrize('text', ['9' * 4000, '0x' + 'f' * 9000, '1' + '0' * 20])
def test_host_number_of_many_digits_returns_none(text: str, host: Host) -> None:
    (host.root / 'number').write_text(text)
    assert host.number('number') is None


def test_host_special_file_returns_none_without_blocking(host: Host) -> None:
    os.mkfifo(host.root / 'fifo')
    (host.root / 'loop').symlink_to('loop')
    (host.root / 'dangling').symlink_to('nothing')
    (host.root / 'directory').mkdir()
    for path in ('fifo', 'loop', 'dangling', 'directory', 'a\0b'):
        assert host.raw(path) is None
        assert host.number(path) is None
        assert host.names(path) == ()
    assert (host.text('loop'), host.target('loop')) == (None, None)


def test_host_names_are_printable(host: Host) -> None:
    (host.root / 'a\x1b').touch()
    (host.root / os.fsdecode(b'b\xff')).touch()
    (host.root / 'c').touch()
    (host.root / 'link').symlink_to('a\x1b')
    assert host.names('') == ('c', 'link')
    assert host.target('link') is None


def test_host_link_out_of_root_is_ignored(tmp_path: Path) -> None:
    root = tmp_path / 'root'
    root.mkdir()
    (tmp_path / 'secret').write_text('outside')
    (tmp_path / 'rootless').mkdir()
    (root / 'relative').symlink_to('../secret')
    (root / 'absolute').symlink_to(tmp_path / 'secret')
    (root / 'directory').symlink_to('../rootless')
    host = Host('compute-1', root)
    for path in ('relative', 'absolute', '../secret', 'directory/../../secret'):
        assert host.text(path) is None
        assert not host.has(path)
        assert host.target(path) is None
    assert host.names('directory') == ()
    assert host.names('..') == ()


def test_host_root_may_be_link(tmp_path: Path) -> None:
    sysfs_tree.build('t4-mdev', tmp_path / 'real')
    (tmp_path / 'alias').symlink_to('real')
    host = Host('compute-1', tmp_path / 'alias')
    assert _function(host, '0000:3b:00.0').driver == 'nvidia'


def test_function_properties_match_sysfs(host: Host) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    card = _function(host, '0000:3b:00.0')
    assert card.ids == '10de:1eb8'
    assert card.subsystem == '10de:12a2'
    assert card.pci_class == '030200'
    assert card.driver == 'nvidia'
    assert card.iommu_group == '41'
    assert card.group_members == ('0000:3b:00.0',)
    assert card.numa_node == 0
    assert card.is_resettable
    assert not card.is_lost
    assert not card.is_virtual
    assert _function(host, '0000:03:00.0').is_boot_vga
    assert not _function(host, '0000:03:00.0').is_resettable


def test_is_virtual_without_physfn_link_is_true(host: Host) -> None:
    sysfs_tree.build('l40s-vendor-vfio', host.root)
    address = '0000:82:00.4'
    (host.root / PciFunction(host, address).path('physfn')).unlink()
    young = _function(host, address)
    assert young.physfn is None
    assert young.is_virtual
    assert not young.is_lost


@pytest.mark.parametrize(
    ('address', 'bridges'),
    [
        ('0000:0d:00.0', ('0000:08:00.0', '0000:09:00.0', '0000:0a:01.0')),
        ('0000:03:00.0', ('0000:00:03.0',)),
    ],
)
def test_bridges_are_parents_from_root_port(
    host: Host, address: str, bridges: tuple[str, ...]
) -> None:
    sysfs_tree.build('nvme-ascend', host.root)
    assert _function(host, address).bridges == bridges


def test_is_lost_config_all_ones_is_true(host: Host) -> None:
    sysfs_tree.build('nvme-ascend', host.root)
    function = _function(host, '0000:0f:00.0')
    assert function.is_lost
    assert function.ids == '19e5:d100'
    assert not function.is_virtual
    assert not _function(host, '0000:0e:00.0').is_lost


def test_is_lost_suspended_does_not_read_config(host: Host, plug: Plug) -> None:
    directory = plug('0000:01:00.0', lost=True)
    (directory / 'power/runtime_status').write_text('suspended\n')
    assert not _function(host, '0000:01:00.0').is_lost


def test_pci_functions_have_addresses_as_names(host: Host, plug: Plug) -> None:
    plug('10000:01:00.0')
    (host.root / 'sys/bus/pci/devices/0000:01:00.0.bak').mkdir()
    assert [item.address for item in host.pci_functions()] == ['10000:01:00.0']


def test_is_resettable_old_kernel_uses_reset_file(host: Host, plug: Plug) -> None:
    (plug('0000:01:00.0') / 'reset_method').unlink()
    assert _function(host, '0000:01:00.0').is_resettable


def test_function_removed_during_scan_reads_empty(host: Host) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    card = _function(host, '0000:3b:00.0')
    functions = [item for item in host.pci_functions() if item != card]
    shutil.rmtree(host.root / 'sys/devices/pci0000:3a')
    assert card.ids == ':'
    assert (card.driver, card.iommu_group, card.virtfns) == (None, None, ())
    assert not card.is_lost
    assert all(item.vendor for item in functions if item.address != '0000:3a:00.0')


def test_garbled_ids_are_empty(host: Host, plug: Plug) -> None:
    directory = plug('0000:01:00.0')
    (directory / 'device').write_text('T4\n')
    (directory / 'class').write_text('0x03\n')
    card = _function(host, '0000:01:00.0')
    assert (card.device, card.pci_class) == ('', '')


def test_host_link_removed_during_read_returns_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_path: object, **_options: object) -> str:
        raise FileNotFoundError

    (tmp_path / 'link').symlink_to('elsewhere')
    monkeypatch.setattr(os, 'readlink', fail)
    host = Host('compute-1', tmp_path)
    assert (host.target('link'), host.text('link/file')) == (None, None)


def test_text_of_cut_file_is_none(host: Host) -> None:
    (host.root / 'proc').mkdir(exist_ok=True)
    (host.root / 'proc/mounts').write_text('/dev/sda2 / ext4 rw 0 0\n' * 50_000)
    assert host.text('proc/mounts') is None


class Card:
    """An object whose property blocks until an event is set."""

    def __init__(self, is_ready: bool) -> None:
        self.reads = 0
        self.event = threading.Event()
        if is_ready:
            self.event.set()

    @cached_property
    def serial(self) -> str:
        """The serial number."""
        self.reads += 1
        self.event.wait()
        return 'S1'


def test_value_is_computed_once() -> None:
    card = Card(is_ready=True)
    assert (card.serial, card.serial, card.reads) == ('S1', 'S1', 1)
    assert Card.serial.__doc__ == 'The serial number.'


def test_blocked_object_blocks_no_other() -> None:
    """The property of functools has a lock for all objects in Python 3.11."""
    slow = Card(is_ready=False)
    thread = threading.Thread(target=lambda: slow.serial, daemon=True)
    thread.start()
    assert Card(is_ready=True).serial == 'S1'
    slow.event.set()
    thread.join()
    assert slow.serial == 'S1'
