# SPDX-License-Identifier: Apache-2.0
"""Writes child directories of PCI functions: network, NVMe and mediated devices."""

from collections.abc import Iterable

from tests.hosts.sysfs_functions import Fields
from tests.hosts.sysfs_writer import Tree


def write_net(tree: Tree, directory: str, interfaces: Iterable[Fields]) -> None:
    """Write network interfaces and their names in the class directory."""
    for interface in interfaces:
        directory_path = f'{directory}/net/{interface["name"]}'
        texts = {
            'address': interface['mac'],
            'operstate': interface['operstate'],
            'phys_port_name': interface.get('phys_port_name', ''),
        }
        for name, text in texts.items():
            tree.file(f'{directory_path}/{name}', text)
        tree.link(f'{directory_path}/device', directory)
        tree.link(f'{directory_path}/subsystem', 'sys/class/net')
        tree.link(f'sys/class/net/{interface["name"]}', directory_path)


def write_nvme(tree: Tree, directory: str, pci: str, nvme: Fields) -> None:
    """Write a controller with its namespaces; drives pad their texts with spaces."""
    directory_path = f'{directory}/nvme/{nvme["name"]}'
    texts = {
        'model': f'{nvme["model"]:<40}',
        'serial': f'{nvme["serial"]:<20}',
        'firmware_rev': f'{nvme["firmware"]:<8}',
        'state': nvme['state'],
        'address': pci,
    }
    for name, text in texts.items():
        tree.file(f'{directory_path}/{name}', text)
    tree.link(f'{directory_path}/device', directory)
    tree.link(f'{directory_path}/subsystem', 'sys/class/nvme')
    tree.link(f'sys/class/nvme/{nvme["name"]}', directory_path)
    for namespace in nvme.get('namespaces', ()):
        _write_namespace(tree, directory_path, namespace)


def _write_namespace(tree: Tree, controller: str, namespace: Fields) -> None:
    name = namespace['name']
    directory_path = f'{controller}/{name}'
    tree.file(f'{directory_path}/size', str(namespace['size_512']))
    tree.directory(f'{directory_path}/holders')
    for holder in namespace.get('holders', ()):
        tree.link(f'{directory_path}/holders/{holder}', f'sys/block/{holder}')
    for number, partition in enumerate(namespace.get('partitions', ()), 1):
        tree.file(f'{directory_path}/{partition}/partition', str(number))
        tree.directory(f'{directory_path}/{partition}/holders')
    tree.link(f'sys/block/{name}', directory_path)
    if namespace.get('mounted'):
        tree.file('proc/mounts', f'/dev/{name} {namespace["mounted"]} ext4 rw 0 0')


def write_mdev(tree: Tree, directory: str, pci: str, mdev: Fields) -> None:
    """Write the supported types and the existing mediated devices of a parent."""
    tree.link(f'sys/class/mdev_bus/{pci}', directory)
    for type_id, (name, available, description) in mdev['types'].items():
        directory_path = f'{directory}/mdev_supported_types/{type_id}'
        texts = {
            'name': name,
            'available_instances': str(available),
            'description': description,
        }
        for file, text in texts.items():
            tree.file(f'{directory_path}/{file}', text)
        tree.file(f'{directory_path}/create', '', '0200')
        tree.directory(f'{directory_path}/devices')
    for uuid, fields in mdev.get('devices', {}).items():
        write_mediated(tree, directory, uuid, fields, mdev['mdev_driver'])


def write_mediated(
    tree: Tree, parent: str, uuid: str, fields: Fields, driver: str
) -> None:
    """Write one mediated device with all links to it."""
    directory_path = f'{parent}/{uuid}'
    kind = f'{parent}/mdev_supported_types/{fields["type"]}'
    group = f'sys/kernel/iommu_groups/{fields["iommu_group"]}'
    tree.file(f'{directory_path}/remove', '', '0200')
    tree.directory(f'sys/bus/mdev/drivers/{driver}')
    for path, target in (
        (f'{directory_path}/mdev_type', kind),
        (f'{directory_path}/iommu_group', group),
        (f'{directory_path}/subsystem', 'sys/bus/mdev'),
        (f'{directory_path}/driver', f'sys/bus/mdev/drivers/{driver}'),
        (f'{kind}/devices/{uuid}', directory_path),
        (f'{group}/devices/{uuid}', directory_path),
        (f'sys/bus/mdev/devices/{uuid}', directory_path),
    ):
        tree.link(path, target)
