# SPDX-License-Identifier: Apache-2.0
"""Builds the directory tree of a fabricated host of ``sysfs-fixtures.yaml``.

``python -m tests.fakes.sysfs_tree t4-mdev DIR`` does it from a shell; without a
directory it lists the hosts. The schema stands at the top of the YAML file.
"""

import functools
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.fakes import sysfs_device, sysfs_functions
from tests.fakes.sysfs_functions import Function
from tests.fakes.sysfs_writer import Tree

# What YAML holds has no type of its own.
Fields = Mapping[str, Any]

SOURCE = Path(__file__).with_name('sysfs-fixtures.yaml')
_FORMAT = 1


@dataclass(frozen=True)
class Description:
    """A host that was built."""

    name: str
    root: Path
    about: str
    kernel: str
    boot_id: str
    functions: Mapping[str, str]  # address -> directory below root, bridges left out
    expect: Fields  # the ground truth; nothing of it is in the tree


def hosts() -> tuple[str, ...]:
    """The names that ``build`` knows."""
    return tuple(_fixtures()['hosts'])


def build(host: str, root: Path, most_virtual: int = 256) -> Description:
    """Write the tree of a host into a directory, which is made if need be.

    No card has more than ``most_virtual`` virtual functions: each costs many files.

    :raises KeyError: no such host
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
    """What the file says of a host.

    :raises KeyError: no such host
    """
    fields: Fields = _fixtures()['hosts'][host]
    return fields


def build_from(
    fields: Fields, root: Path, most_virtual: int = 256
) -> Mapping[str, str]:
    """As ``build``, of a host that may differ from all in the file; its functions."""
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
    """The ground truth of a host.

    :raises KeyError: no such host
    """
    expect: Fields = _fixtures()['hosts'][host].get('expect', {})
    return expect


def with_virtual(host: str, address: str, count: int) -> tuple[Function, ...]:
    """A card as its host would have it with that many virtual functions, card first.

    :raises KeyError: no such host or card, or one that cannot have any
    """
    fixtures = _fixtures()
    devices = {item['pci']: item for item in fixtures['hosts'][host]['devices']}
    applied = sysfs_functions.merged(
        _VIRTUAL.get(address, {}),
        sysfs_functions.applied(devices[address], fixtures['templates']),
    )
    applied = sysfs_functions.merged(applied, {'sriov': {'num': count}})
    # What the fixture says of one of them is the state of the host as it was built.
    applied['sriov'].pop('vf_overrides', None)
    return sysfs_functions.resolve([applied], fixtures['templates'])


# Of cards whose virtual functions are off in the fixtures.
_VIRTUAL: Fields = {
    '0000:c3:00.0': {
        'sriov': {'vf': {'like': 'l40svf', 'iommu_group_base': 600, 'numa': 1}}
    },
}


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
    """What the host has beside its PCI functions, and what differs from the rule."""
    for entry in fields.get('bus_devices', ()):
        _register(tree, 'bus', f'{entry["bus"]}/devices', entry)
    for entry in fields.get('class_devices', ()):
        where = _register(tree, 'class', entry['class'], entry)
        if 'device' in entry:
            tree.link(f'{where}/device', f'{{{entry["device"]}}}')
    for path in fields.get('dirs', ()):
        tree.directory(path)
    modes = fields.get('modes', {})
    for path, text in fields.get('files', {}).items():
        tree.file(path, text, modes.get(path))
    for path, target in fields.get('links', {}).items():
        tree.link(path, target)


def _register(tree: Tree, kind: str, collection: str, entry: Fields) -> str:
    """Make a directory known to a bus or a class, and say which it is."""
    # An address stands for a path from the root, other text for one below devices.
    under = tree.place(entry['under']).removeprefix('sys/devices/')
    where = f'sys/devices/{under}'
    tree.directory(where)
    tree.link(f'sys/{kind}/{collection}/{entry["name"]}', where)
    tree.link(f'{where}/subsystem', f'sys/{kind}/{entry[kind]}')
    return where


def main(arguments: list[str]) -> int:
    """The command: HOST DIR, or nothing to see which hosts there are."""
    if len(arguments) != 2 or arguments[0] not in hosts():
        print('HOST DIR are wanted, HOST being one of:', *hosts(), file=sys.stderr)
        return 2
    print(build(arguments[0], Path(arguments[1])).about)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
