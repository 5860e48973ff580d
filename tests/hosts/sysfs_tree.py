# SPDX-License-Identifier: Apache-2.0
"""Builds the directory tree of a fixture host of ``sysfs-fixtures.yaml``.

From a shell: ``python -m tests.hosts.sysfs_tree t4-mdev DIR``. Without a directory it
lists the hosts. The YAML file begins with the schema.
"""

import functools
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.hosts import sysfs_device, sysfs_functions
from tests.hosts.sysfs_functions import Function
from tests.hosts.sysfs_writer import Tree

# YAML values have no common type.
Fields = Mapping[str, Any]

SOURCE = Path(__file__).with_name('sysfs-fixtures.yaml')
_FORMAT = 1


@dataclass(frozen=True)
class Description:
    """Result of a build."""

    name: str
    root: Path
    about: str
    kernel: str
    boot_id: str
    functions: Mapping[str, str]  # address -> directory below root, without bridges
    expect: Fields  # expected inventory; the tree does not contain it


def hosts() -> tuple[str, ...]:
    """Return the names of the fixture hosts."""
    return tuple(_fixtures()['hosts'])


def build(host: str, root: Path, most_virtual: int = 256) -> Description:
    """Write the tree of a host into a directory, which is created if needed.

    :param most_virtual: limit of virtual functions per card; each has many files

    :raises KeyError: unknown host
    """
    fields = fields_of(host)
    directories = build_from(fields, root, most_virtual)
    return Description(
        name=host,
        root=root,
        about=fields['about'],
        kernel=fields['kernel'],
        boot_id=fields['boot_id'],
        functions=directories,
        expect=fields.get('expect', {}),
    )


def fields_of(host: str) -> Fields:
    """Return the fixture of a host.

    :param host: its name, or several names joined by ``+`` for a host with the cards of
        all, or the path of a YAML file with the fields of one host
    :raises KeyError: unknown host
    """
    if host.endswith('.yaml'):
        fields: Fields = yaml.safe_load(Path(host).read_text())
        return {'about': host, 'kernel': '', 'boot_id': '', **fields}
    parts = [_fixtures()['hosts'][name] for name in host.split('+')]
    return functools.reduce(_join_hosts, parts)


def build_from(
    fields: Fields, root: Path, most_virtual: int = 256
) -> Mapping[str, str]:
    """Build a host that may differ from its fixture; return the functions."""
    functions = sysfs_functions.resolve(
        fields['devices'], _fixtures()['templates'], most_virtual
    )
    directories = {item.pci: item.directory for item in functions}
    tree = Tree(root, directories)
    _write_host(tree, fields)
    for function in functions:
        sysfs_device.write(tree, function)
    _write_extras(tree, fields)
    return directories


def expectation(host: str) -> Fields:
    """Return the expected inventory of a host.

    :raises KeyError: unknown host
    """
    expect: Fields = fields_of(host).get('expect', {})
    return expect


def with_virtual(host: str, address: str, count: int) -> tuple[Function, ...]:
    """Return a card followed by the given number of virtual functions.

    :raises KeyError: unknown host or card, or a card without SR-IOV
    """
    fixtures = _fixtures()
    devices = {item['pci']: item for item in fields_of(host)['devices']}
    applied = sysfs_functions.merge_fields(
        _VIRTUAL.get(address, {}),
        sysfs_functions.apply_templates(devices[address], fixtures['templates']),
    )
    applied = sysfs_functions.merge_fields(applied, {'sriov': {'num': count}})
    # The fixture describes the virtual functions that exist after the build.
    applied['sriov'].pop('vf_overrides', None)
    return sysfs_functions.resolve([applied], fixtures['templates'])


# Cards whose virtual functions are disabled in the fixtures.
_VIRTUAL: Fields = {
    '0000:5e:00.0': {
        'sriov': {
            'vf': {
                'class': '120000',
                'rev': '00',
                'driver': None,
                'iommu_group_base': 90,
                'numa': 0,
                'reset': 'flr',
            }
        }
    },
    '0000:c3:00.0': {
        'sriov': {'vf': {'like': 'l40svf', 'iommu_group_base': 600, 'numa': 1}}
    },
}


def _join_hosts(first: Fields, second: Fields) -> Fields:
    """Return a host with the cards of both. The texts are those of the first."""
    result = {**second, **first}
    for name in first.keys() & second.keys():
        before, added = first[name], second[name]
        if isinstance(before, list):
            result[name] = [*before, *added]
        elif isinstance(before, dict):
            result[name] = _join_hosts(before, added)
    return result


@functools.cache
def _fixtures() -> Fields:
    fixtures: Fields = yaml.safe_load(SOURCE.read_text())
    if fixtures['format'] != _FORMAT:
        raise ValueError(f'{SOURCE.name} is of format {fixtures["format"]}')
    return fixtures


def _write_host(tree: Tree, fields: Fields) -> None:
    for top in ('sys', 'proc', 'dev', 'etc'):
        tree.directory(top)
    tree.file('proc/sys/kernel/osrelease', fields['kernel'])
    tree.file('proc/sys/kernel/random/boot_id', fields['boot_id'])
    tree.file('sys/bus/pci/rescan', '', '0200')
    tree.file('sys/bus/pci/drivers_probe', '', '0200')


def _write_extras(tree: Tree, fields: Fields) -> None:
    """Write host files outside PCI, and exceptions."""
    for entry in fields.get('bus_devices', ()):
        _register(tree, 'bus', f'{entry["bus"]}/devices', entry)
    for entry in fields.get('class_devices', ()):
        device_path = _register(tree, 'class', entry['class'], entry)
        if 'device' in entry:
            tree.link(f'{device_path}/device', f'{{{entry["device"]}}}')
    for path in fields.get('dirs', ()):
        tree.directory(path)
    modes = fields.get('modes', {})
    for path, text in fields.get('files', {}).items():
        tree.file(path, text, modes.get(path))
    for path, target in fields.get('links', {}).items():
        tree.link(path, target)


def _register(tree: Tree, kind: str, collection: str, entry: Fields) -> str:
    """Add a directory to a bus or a class, and link it back."""
    # An address stands for a path from the root, other text for a path below devices.
    under = tree.place(entry['under']).removeprefix('sys/devices/')
    device_path = f'sys/devices/{under}'
    tree.directory(device_path)
    tree.link(f'sys/{kind}/{collection}/{entry["name"]}', device_path)
    tree.link(f'{device_path}/subsystem', f'sys/{kind}/{entry[kind]}')
    return device_path


def main(arguments: list[str]) -> int:
    """Run the command with HOST and DIR, or list the hosts."""
    if len(arguments) != 2 or arguments[0] not in hosts():
        print('HOST DIR are wanted, HOST being one of:', *hosts(), file=sys.stderr)
        return 2
    print(build(arguments[0], Path(arguments[1])).about)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
