# SPDX-License-Identifier: Apache-2.0
"""Reading the host: whatever fails answers None, and nothing outside is read."""

import os
import shutil
from pathlib import Path

import pytest

from cyborg_lite.drivers.sysfs import Host, PciFunction, pci_address
from tests.fakes import sysfs_tree
from tests.unit.drivers.conftest import Plug


def _function(host: Host, address: str) -> PciFunction:
    return next(each for each in host.pci_functions() if each.address == address)


@pytest.mark.parametrize(
    ('text', 'address'),
    [
        ('0000:3b:00.0', '0000:3b:00.0'),
        ('00000000:3B:00.0', '0000:3b:00.0'),
        ('10000:01:00.0', '10000:01:00.0'),
        ('00010000:01:00.0\n', '10000:01:00.0'),
    ],
)
def test_an_address_is_spelled_in_one_way(text: str, address: str) -> None:
    assert pci_address(text) == address


@pytest.mark.parametrize(
    'text',
    ['', '3b:00.0', '0000:3b:00', '0000:3b:00x0', '0000:3b:20.0', '0000:3b:00.8'],
)
def test_other_text_is_no_address(text: str) -> None:
    assert pci_address(text) is None


def test_a_root_without_sys_has_nothing(host: Host) -> None:
    assert list(host.pci_functions()) == []
    assert host.boot_id == ''
    assert host.names('sys') == ()


def test_what_cannot_be_read_is_none(host: Host) -> None:
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


def test_numbers_are_decimal_or_hexadecimal(host: Host) -> None:
    (host.root / 'ten').write_text('10\n')
    (host.root / 'sixteen').write_text('0x10\n')
    assert (host.number('ten'), host.number('sixteen')) == (10, 16)


def test_links_out_of_the_root_are_not_followed(tmp_path: Path) -> None:
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


def test_a_link_that_goes_in_circles_is_nothing(host: Host) -> None:
    (host.root / 'one').symlink_to('two')
    (host.root / 'two').symlink_to('one')
    assert host.text('one') is None
    assert host.target('one') is None


def test_the_root_may_itself_be_reached_by_a_link(tmp_path: Path) -> None:
    sysfs_tree.build('t4-mdev', tmp_path / 'real')
    (tmp_path / 'alias').symlink_to('real')
    host = Host('compute-1', tmp_path / 'alias')
    assert _function(host, '0000:3b:00.0').driver == 'nvidia'


def test_a_function_says_what_sysfs_says(host: Host) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    card = _function(host, '0000:3b:00.0')
    assert card.ids == '10de:1eb8'
    assert card.subsystem == '10de:12a2'
    assert card.pci_class == '030200'
    assert card.driver == 'nvidia'
    assert card.iommu_group == '41'
    assert card.group_members == ('0000:3b:00.0',)
    assert card.numa_node == 0
    assert card.resettable
    assert not card.lost
    assert not card.virtual
    assert _function(host, '0000:03:00.0').boot_vga
    assert not _function(host, '0000:03:00.0').resettable


def test_virtual_functions_come_in_numerical_order(host: Host) -> None:
    sysfs_tree.build('generic-pci', host.root)
    owner = _function(host, '0000:22:1f.0')
    slots = [f'0000:22:1f.{number}' for number in range(2, 8)]
    slots += [f'0000:23:00.{number}' for number in range(8)]
    assert owner.virtfns == (*slots, '0000:23:01.0', '0000:23:01.1')
    assert _function(host, '0000:23:01.1').physfn == '0000:22:1f.0'
    assert owner.physfn is None


def test_a_virtual_function_is_known_before_it_is_linked(host: Host) -> None:
    sysfs_tree.build('l40s-vendor-vfio', host.root)
    address = '0000:82:00.4'
    (host.root / PciFunction(host, address).path('physfn')).unlink()
    young = _function(host, address)
    assert young.physfn is None
    assert young.virtual
    assert not young.lost


def test_no_numa_node_is_none(host: Host) -> None:
    sysfs_tree.build('generic-pci', host.root)
    assert _function(host, '0000:21:00.0').numa_node is None


def test_a_function_without_iommu_has_no_group(host: Host) -> None:
    sysfs_tree.build('generic-pci', host.root)
    assert _function(host, '0000:26:00.0').iommu_group is None
    assert _function(host, '0000:26:00.0').group_members == ()


def test_a_lost_device_keeps_its_ids_and_answers_all_ones(host: Host) -> None:
    sysfs_tree.build('nvme-ascend', host.root)
    lost = _function(host, '0000:0f:00.0')
    assert lost.lost
    assert lost.ids == '19e5:d100'
    assert not lost.virtual
    assert not _function(host, '0000:0e:00.0').lost


def test_a_sleeping_device_is_not_woken_to_see_whether_it_is_lost(
    host: Host, plug: Plug
) -> None:
    directory = plug('0000:01:00.0', lost=True)
    (directory / 'power/runtime_status').write_text('suspended\n')
    assert not _function(host, '0000:01:00.0').lost


def test_domains_of_five_digits_are_found(host: Host, plug: Plug) -> None:
    plug('10000:01:00.0')
    assert [each.address for each in host.pci_functions()] == ['10000:01:00.0']


def test_names_that_are_no_addresses_are_passed_over(host: Host, plug: Plug) -> None:
    plug('0000:01:00.0')
    (host.root / 'sys/bus/pci/devices/0000:01:00.0.bak').mkdir()
    assert len(list(host.pci_functions())) == 1


def test_kernels_before_reset_method_show_the_reset_file(
    host: Host, plug: Plug
) -> None:
    (plug('0000:01:00.0') / 'reset_method').unlink()
    assert _function(host, '0000:01:00.0').resettable


def test_a_function_that_vanishes_while_it_is_read_says_nothing(host: Host) -> None:
    sysfs_tree.build('t4-mdev', host.root)
    card = _function(host, '0000:3b:00.0')
    others = [each for each in host.pci_functions() if each != card]
    shutil.rmtree(host.root / 'sys/devices/pci0000:3a')
    assert card.ids == ':'
    assert (card.driver, card.iommu_group, card.virtfns) == (None, None, ())
    assert not card.lost
    assert all(each.vendor for each in others if each.address != '0000:3a:00.0')


def test_what_was_read_once_stays_for_the_scan(host: Host, plug: Plug) -> None:
    directory = plug('0000:01:00.0')
    card = _function(host, '0000:01:00.0')
    assert card.device == '1eb8'
    (directory / 'device').write_text('0x20f1\n')
    assert card.device == '1eb8'
    assert _function(host, '0000:01:00.0').device == '20f1'


def test_garbled_ids_are_no_ids(host: Host, plug: Plug) -> None:
    directory = plug('0000:01:00.0')
    (directory / 'device').write_text('T4\n')
    (directory / 'class').write_text('0x03\n')
    card = _function(host, '0000:01:00.0')
    assert (card.device, card.pci_class) == ('', '')


def test_a_link_that_goes_while_it_is_followed_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_path: object, **_how: object) -> str:
        raise FileNotFoundError

    (tmp_path / 'link').symlink_to('elsewhere')
    monkeypatch.setattr(os, 'readlink', gone)
    host = Host('compute-1', tmp_path)
    assert (host.target('link'), host.text('link/file')) == (None, None)
