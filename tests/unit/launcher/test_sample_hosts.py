# SPDX-License-Identifier: Apache-2.0
"""Tests of the sample hosts and their bitstreams."""

from pathlib import Path

import pytest

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from devstack.launcher import sample_bitstreams, sample_hosts
from tests.doubles import image_service
from tests.hosts import sysfs_tree
from tests.hosts.kernel import FakeKernel


def test_names_cover_all_fixtures() -> None:
    fixtures = map(sample_hosts.find_fixture, sample_hosts.NAMES)
    parts = {part for fixture in fixtures for part in fixture.split('+')}
    assert parts == set(sysfs_tree.hosts())


def test_default_host_joins_cards(tmp_path: Path) -> None:
    fixture = sample_hosts.find_fixture(sample_hosts.DEFAULT)
    functions = sysfs_tree.build(fixture, tmp_path, 4).functions
    assert {'0000:af:00.0', '0000:be:00.0'} <= functions.keys()
    classes = sample_hosts.read_resource_classes(sample_hosts.DEFAULT)
    assert classes == {'PGPU', 'VGPU', 'FPGA'}


def test_read_options_returns_lines_of_options() -> None:
    options = sample_hosts.read_options('a100-mig')['nvidia_gpu_driver']
    (line,) = options['vgpu_types']
    assert line == '0000:41:00.0=nvidia-471,0000:c1:00.0=nvidia-474+nvidia-476'
    specs = sample_hosts.read_options('generic-pci')['pci_driver']['device_spec']
    assert all(spec.startswith('{') for spec in specs)


def test_yaml_file_is_host(tmp_path: Path) -> None:
    card = {
        'pci': '0000:0a:00.0',
        'under': 'pci0000:00/0000:00:01.0',
        'like': 't4',
        'iommu_group': 7,
        'numa': 0,
    }
    file = tmp_path / 'mine.yaml'
    file.write_text(f'devices: [{card}]\n')
    fixture = sample_hosts.find_fixture(str(file))
    built = sysfs_tree.build(fixture, tmp_path / 'host')
    assert set(built.functions) == {'0000:0a:00.0'}
    assert sample_hosts.read_resource_classes(str(file)) == set()


@pytest.mark.parametrize('trait', sample_bitstreams.IMAGES)
def test_images_are_served(tmp_path: Path, trait: str) -> None:
    sample_bitstreams.store(tmp_path)
    uuid = sample_bitstreams.find_image(('OWNER_CYBORG', trait))
    assert uuid is not None
    status, content = image_service.answer(tmp_path, f'/v2/images/{uuid}/file')
    assert (status, bool(content)) == (200, True)
    assert sample_bitstreams.find_image(('CUSTOM_X',)) is None


def test_described_host_of_driver_page_is_built(tmp_path: Path) -> None:
    page = Path('doc/source/contributor/drivers.rst').read_text()
    block = page.split('.. code-block:: yaml\n\n', 1)[1].split('\n::', 1)[0]
    # The revision and the NUMA node of a card may be missing, too.
    for name, text in (
        ('page', block),
        ('short', block.replace('numa: 0', 'rev: "01"')),
    ):
        file = tmp_path / f'{name}.yaml'
        file.write_text(text)
        functions = sysfs_tree.build(str(file), tmp_path / name, 4).functions
        assert '0000:0a:00.0' in functions


def test_ports_of_default_host_become_virtual_functions(tmp_path: Path) -> None:
    kernel = FakeKernel(sample_hosts.find_fixture(sample_hosts.DEFAULT), tmp_path)
    kernel.run(tmp_path, 'fpgaport', ['release', '/dev/dfl-fme.0', '0'])
    kernel.write(tmp_path, 'sys/bus/pci/devices/0000:5e:00.0/sriov_numvfs', '1')
    assert PciFunction(Host('compute-1', tmp_path), '0000:5e:00.1').iommu_group
