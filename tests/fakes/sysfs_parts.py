# SPDX-License-Identifier: Apache-2.0
"""Writes what hangs below a PCI function: network, NVMe and mediated devices."""

from collections.abc import Iterable

from tests.fakes.sysfs_functions import Fields
from tests.fakes.sysfs_writer import Tree


def write_net(tree: Tree, directory: str, interfaces: Iterable[Fields]) -> None:
    """Network interfaces, and their names in the class."""
    for index, interface in enumerate(interfaces):
        where = f'{directory}/net/{interface["name"]}'
        up = interface['operstate'] == 'up'
        texts = {
            'address': interface['mac'],
            'operstate': interface['operstate'],
            'carrier': '1' if up else '0',
            'dev_id': '0x0',
            'dev_port': '0',
            'ifindex': str(index + 2),
            'mtu': '1500',
            'phys_port_name': interface.get('phys_port_name', ''),
        }
        for name, text in texts.items():
            tree.file(f'{where}/{name}', text)
        for direction in ('rx', 'tx'):
            for figure in ('bytes', 'dropped', 'errors'):
                tree.file(f'{where}/statistics/{direction}_{figure}', '0')
        tree.link(f'{where}/device', directory)
        tree.link(f'{where}/subsystem', 'sys/class/net')
        tree.link(f'sys/class/net/{interface["name"]}', where)


def write_nvme(tree: Tree, directory: str, pci: str, nvme: Fields) -> None:
    """A controller with its namespaces; the drive pads its texts with spaces."""
    where = f'{directory}/nvme/{nvme["name"]}'
    texts = {
        'model': f'{nvme["model"]:<40}',
        'serial': f'{nvme["serial"]:<20}',
        'firmware_rev': f'{nvme["firmware"]:<8}',
        'state': nvme['state'],
        'address': pci,
        'cntlid': '1',
        'transport': 'pcie',
    }
    for name, text in texts.items():
        tree.file(f'{where}/{name}', text)
    tree.file(f'{where}/reset_controller', '', '0200')
    tree.link(f'{where}/device', directory)
    tree.link(f'{where}/subsystem', 'sys/class/nvme')
    tree.link(f'sys/class/nvme/{nvme["name"]}', where)
    for namespace in nvme.get('namespaces', ()):
        _write_namespace(tree, where, namespace)


def _write_namespace(tree: Tree, controller: str, namespace: Fields) -> None:
    name = namespace['name']
    where = f'{controller}/{name}'
    tree.file(f'{where}/size', str(namespace['size_512']))
    tree.directory(f'{where}/holders')
    for holder in namespace.get('holders', ()):
        tree.link(f'{where}/holders/{holder}', f'sys/block/{holder}')
    for number, partition in enumerate(namespace.get('partitions', ()), 1):
        tree.file(f'{where}/{partition}/partition', str(number))
        tree.directory(f'{where}/{partition}/holders')
    tree.link(f'sys/block/{name}', where)
    if namespace.get('mounted'):
        tree.file('proc/mounts', f'/dev/{name} {namespace["mounted"]} ext4 rw 0 0')


def write_mdev(tree: Tree, directory: str, pci: str, mdev: Fields) -> None:
    """Types that a parent supports, and the mediated devices that it has."""
    tree.link(f'sys/class/mdev_bus/{pci}', directory)
    for type_id, (name, available, description) in mdev['types'].items():
        where = f'{directory}/mdev_supported_types/{type_id}'
        texts = {
            'name': name,
            'available_instances': str(available),
            'description': description,
            'device_api': mdev['device_api'],
        }
        for file, text in texts.items():
            tree.file(f'{where}/{file}', text)
        tree.file(f'{where}/create', '', '0200')
        tree.directory(f'{where}/devices')
    for uuid, fields in mdev.get('devices', {}).items():
        write_mediated(tree, directory, uuid, fields, mdev['mdev_driver'])


def write_mediated(
    tree: Tree, parent: str, uuid: str, fields: Fields, driver: str
) -> None:
    """One mediated device, with all links to it."""
    where = f'{parent}/{uuid}'
    kind = f'{parent}/mdev_supported_types/{fields["type"]}'
    group = f'sys/kernel/iommu_groups/{fields["iommu_group"]}'
    tree.file(f'{where}/remove', '', '0200')
    tree.directory(f'sys/bus/mdev/drivers/{driver}')
    for path, target in (
        (f'{where}/mdev_type', kind),
        (f'{where}/iommu_group', group),
        (f'{where}/subsystem', 'sys/bus/mdev'),
        (f'{where}/driver', f'sys/bus/mdev/drivers/{driver}'),
        (f'{kind}/devices/{uuid}', where),
        (f'{group}/devices/{uuid}', where),
        (f'sys/bus/mdev/devices/{uuid}', where),
    ):
        tree.link(path, target)
