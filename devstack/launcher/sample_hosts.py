# SPDX-License-Identifier: Apache-2.0
"""The sample hosts that ``--sample-host`` selects.

The descriptions of the hosts are importable only in the virtual environment.
"""

from collections.abc import Mapping, Sequence
from typing import Final

DEFAULT: Final = 'default'

# Names of tests/hosts/sysfs-fixtures.yaml; ``+`` joins hosts.
_FIXTURES: Final = {
    DEFAULT: 't4-mdev+fpga-intel',
    't4-mdev': 't4-mdev',
    'a100-mig': 'a100-sriov-mig',
    'l40s-vendor-vfio': 'l40s-vendor-vfio',
    'l4-blackwell-vgpu': 'l4-blackwell-vgpu',
    'h100-hgx': 'h100-hgx',
    'fpga-intel': 'fpga-intel',
    'fpga-xilinx': 'fpga-xilinx-u250',
    'fpga-xilinx-shared-group': 'u250-shared-group',
    'qat-x710': 'qat-x710',
    'qat-services': 'qat-services',
    'cx6dx-sriov': 'cx6dx-sriov',
    'nvme-ascend': 'nvme-ascend',
    'nvme-lvm': 'nvme-lvm',
    'generic-pci': 'generic-pci',
    'function-groups': 'function-groups',
    'dpu-gaudi': 'dpu-gaudi',
}
NAMES: Final = tuple(_FIXTURES)
_MULTIPLE: Final = frozenset({'device_spec'})  # options with one line per value


def find_fixture(name: str) -> str:
    """Return the fixture of a sample host, or the path of the user's own YAML file."""
    return _FIXTURES.get(name, name)


def read_options(name: str) -> dict[str, Mapping[str, Sequence[str]]]:
    """Return the lines of the driver options of a sample host, by section and option.

    The operator of the host has chosen vGPU types, for example. Management functions of
    FPGAs are not offered, as by default.
    """
    from tests.hosts import fixture_drivers, sysfs_tree

    config = dict(sysfs_tree.expectation(find_fixture(name)).get('config', {}))
    config.pop('fpga_management', None)
    return {
        section: {
            key: texts if key in _MULTIPLE else [','.join(texts)]
            for key, texts in options.items()
        }
        for section, options in fixture_drivers.read_options(config).items()
    }


def read_resource_classes(name: str) -> set[str]:
    """Return the resource classes that a sample host offers."""
    from tests.hosts import sysfs_tree

    devices = sysfs_tree.expectation(find_fixture(name)).get('devices', ())
    return {fields['rc'].lstrip('+') for fields in devices if fields.get('total')}


def list_texts() -> str:
    """Return the names of all sample hosts, each with a description."""
    from tests.hosts import sysfs_tree

    lines = []
    for name, fixture in _FIXTURES.items():
        parts = [sysfs_tree.fields_of(part)['about'] for part in fixture.split('+')]
        lines.append(f'{name}\n    {"; ".join(parts)}')
    return '\n'.join(lines)
