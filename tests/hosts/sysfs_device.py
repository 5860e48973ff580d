# SPDX-License-Identifier: Apache-2.0
"""Writes a PCI function of a fixture host: files, links and parents."""

import fnmatch
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.hosts import sysfs_parts
from tests.hosts.sysfs_functions import Fields, Function
from tests.hosts.sysfs_writer import Tree

# The fixture ``plug``: takes an address, ids and fields; returns a sysfs directory.
Plug = Callable[..., Path]

_BRIDGE_IDS = ('8086', '2030', '0000', '0000')
_AER_NAMES = {
    'correctable': ('COR', ('RxErr', 'BadTLP', 'BadDLLP', 'Rollover', 'Timeout')),
    'nonfatal': ('NONFATAL', ('DLP', 'TLP', 'FCP', 'CmpltTO', 'UnsupReq')),
    'fatal': ('FATAL', ('DLP', 'TLP', 'FCP', 'CmpltTO', 'UnsupReq')),
}


def write(tree: Tree, function: Function) -> None:
    """Write the function, its child directories and its bridges."""
    fields = function.fields
    directory = function.directory
    tree.directory(directory)
    for name, content in _generate_files(function):
        if name not in fields.get('absent', ()):
            tree.file(f'{directory}/{name}', content)
    for name in _write_only(function):
        if name not in fields.get('absent', ()):
            tree.file(f'{directory}/{name}', '', '0200')
    _join_bus(tree, function.pci, directory, fields)
    _join_group(tree, function)
    _link_virtual(tree, function)
    sysfs_parts.write_net(tree, directory, fields.get('net', ()))
    if 'nvme' in fields:
        sysfs_parts.write_nvme(tree, directory, function.pci, fields['nvme'])
    if 'mdev' in fields:
        sysfs_parts.write_mdev(tree, directory, function.pci, fields['mdev'])
    _write_own(tree, directory, fields)
    _write_bridges(tree, function.under)


def _generate_files(function: Function) -> Iterator[tuple[str, str | bytes]]:
    fields = function.fields
    is_lost = fields.get('lost', False)
    yield from _identity(function.ids, fields['class'])
    yield 'subsystem_vendor', f'0x{function.ids[2]}'
    yield 'subsystem_device', f'0x{function.ids[3]}'
    yield 'uevent', _uevent(function)
    yield 'config', b'\xff' * 64 if is_lost else _config(function)
    yield 'numa_node', str(fields['numa'])
    yield from _SAME_EVERYWHERE.items()
    yield from _error_counters()
    yield from _link_state(fields, is_lost)
    if fields.get('reset'):
        yield 'reset_method', fields['reset']
    yield from _sriov(function)


_SAME_EVERYWHERE = {
    'driver_override': '(null)',
    'power/runtime_status': 'active',
    'power/control': 'auto',
}


def _identity(ids: tuple[str, ...], pci_class: str) -> Iterator[tuple[str, str]]:
    yield 'vendor', f'0x{ids[0]}'
    yield 'device', f'0x{ids[1]}'
    yield 'class', f'0x{pci_class}'


def _error_counters() -> Iterator[tuple[str, str]]:
    for severity, (total, names) in _AER_NAMES.items():
        lines = [f'{name} 0' for name in names]
        yield f'aer_dev_{severity}', '\n'.join([*lines, f'TOTAL_ERR_{total} 0'])


def _write_only(function: Function) -> Iterator[str]:
    yield 'remove'
    if function.fields.get('reset'):
        yield 'reset'


def _link_state(fields: Fields, is_lost: bool) -> Iterator[tuple[str, str]]:
    if 'link' not in fields and not is_lost:
        return
    speed, width, max_speed, max_width = fields.get('link', ('', '', 'Unknown', '255'))
    yield 'current_link_speed', 'Unknown' if is_lost else speed
    yield 'current_link_width', '63' if is_lost else width
    yield 'max_link_speed', max_speed
    yield 'max_link_width', max_width


def _sriov(function: Function) -> Iterator[tuple[str, str]]:
    sriov = function.fields.get('sriov')
    if sriov is None:
        return
    yield 'sriov_totalvfs', str(sriov['total'])
    yield 'sriov_numvfs', str(sriov['num'])
    yield 'sriov_offset', str(sriov['offset'])
    yield 'sriov_stride', str(sriov['stride'])
    yield 'sriov_vf_device', f'{int(sriov["vf_device"], 16):x}'
    yield 'sriov_drivers_autoprobe', str(sriov['autoprobe'])


def _uevent(function: Function) -> str:
    vendor, device, subvendor, subdevice = (part.upper() for part in function.ids)
    driver = function.fields.get('driver')
    lines = [f'DRIVER={driver}'] if driver else []
    lines += [
        f'PCI_CLASS={int(function.fields["class"], 16):04X}',
        f'PCI_ID={vendor}:{device}',
        f'PCI_SUBSYS_ID={subvendor}:{subdevice}',
        f'PCI_SLOT_NAME={function.pci}',
    ]
    return '\n'.join(lines)


def _config(function: Function) -> bytes:
    base, sub, interface = _class_bytes(function)
    vendor, device, subvendor, subdevice = (int(part, 16) for part in function.ids)
    if function.physfn:
        vendor = device = 0xFFFF  # a VF has no ids of its own in config space
    head = struct.pack('<HHHH', vendor, device, 0x0406, 0x0010)
    revision = int(function.fields['rev'], 16)
    severity = bytes((revision, interface, sub, base))
    return (head + severity).ljust(44, b'\0') + struct.pack(
        '<HH16x', subvendor, subdevice
    )


def _class_bytes(function: Function) -> bytes:
    return bytes.fromhex(function.fields['class'])


def _join_bus(tree: Tree, pci: str, directory: str, fields: Fields) -> None:
    tree.link(f'sys/bus/pci/devices/{pci}', directory)
    tree.link(f'{directory}/subsystem', 'sys/bus/pci')
    driver = fields.get('driver')
    if not driver:
        return
    home = f'sys/bus/pci/drivers/{driver}'
    module = f'sys/module/{fields.get("driver_module", driver)}'
    tree.directory(module)
    tree.link(f'{home}/module', module)
    tree.link(f'{home}/{pci}', directory)
    tree.link(f'{directory}/driver', home)
    tree.file(f'{home}/unbind', '', '0200')


def _join_group(tree: Tree, function: Function) -> None:
    group = function.fields.get('iommu_group')
    if group is None:
        return
    home = f'sys/kernel/iommu_groups/{group}'
    tree.link(f'{home}/devices/{function.pci}', function.directory)
    tree.link(f'{function.directory}/iommu_group', home)
    driver = function.fields.get('driver') or ''
    if driver == 'vfio-pci' or fnmatch.fnmatch(driver, '*-vfio-*'):
        tree.file(f'dev/vfio/{group}', '')
        tree.directory(f'{function.directory}/vfio-dev/vfio{group}')


def _link_virtual(tree: Tree, function: Function) -> None:
    for index, address in enumerate(function.virtfns):
        tree.link(f'{function.directory}/virtfn{index}', f'{{{address}}}')
    if function.physfn:
        tree.link(f'{function.directory}/physfn', f'{{{function.physfn}}}')


def _write_own(tree: Tree, directory: str, fields: Fields) -> None:
    for path in fields.get('dirs', ()):
        tree.directory(f'{directory}/{path}')
    modes = fields.get('modes', {})
    for path, text in fields.get('files', {}).items():
        tree.file(f'{directory}/{path}', text, modes.get(path))
    for path, target in fields.get('links', {}).items():
        tree.link(f'{directory}/{path}', target)


def _write_bridges(tree: Tree, under: str) -> None:
    host_bridge, *bridges = under.split('/')
    directory = f'sys/devices/{host_bridge}'
    for pci in bridges:
        directory = f'{directory}/{pci}'
        if tree.has_file(f'{directory}/class'):  # written with another function
            continue
        for name, text in _identity(_BRIDGE_IDS, '060400'):
            tree.file(f'{directory}/{name}', text)
        _join_bus(tree, pci, directory, {'driver': 'pcieport'})
