# SPDX-License-Identifier: Apache-2.0
"""Tests of the consistency of the fixture hosts."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.hosts import sysfs_tree
from tests.hosts.sysfs_functions import virtual_address
from tests.hosts.sysfs_tree import Description


@pytest.fixture(scope='module', params=sysfs_tree.hosts())
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Description:
    name: str = request.param
    return sysfs_tree.build(name, tmp_path_factory.mktemp(name))


def _links(root: Path) -> list[Path]:
    return [path for path in root.rglob('*') if path.is_symlink()]


def test_links_are_relative_and_stay_inside(built: Description) -> None:
    root = built.root.resolve()
    links = _links(built.root)
    assert links
    for link in links:
        assert not os.readlink(link).startswith('/'), link
        assert link.resolve(strict=True).is_relative_to(root), link


def test_physical_and_virtual_functions_are_linked(built: Description) -> None:
    for address, directory in built.functions.items():
        path = built.root / directory
        enabled = sorted(path.glob('virtfn*'))
        for link in enabled:
            assert (link.resolve() / 'physfn').resolve().name == address
        count = path / 'sriov_numvfs'
        if count.exists():
            assert int(count.read_text()) == len(enabled)


def test_iommu_groups_match_functions(built: Description) -> None:
    groups = built.root / 'sys/kernel/iommu_groups'
    from_functions = {
        (link.resolve().name, address)
        for address, directory in built.functions.items()
        if (link := built.root / directory / 'iommu_group').exists()
    }
    from_groups = {
        (entry.parent.parent.name, entry.name)
        for entry in groups.glob('*/devices/*')
        if re.match('[0-9a-f]{4}:', entry.name)
    }
    assert from_functions == from_groups


def test_uevent_matches_id_files(built: Description) -> None:
    for directory in built.functions.values():
        path = built.root / directory
        fields = dict(
            line.split('=', 1) for line in (path / 'uevent').read_text().splitlines()
        )
        ids = [(path / name).read_text()[2:6].upper() for name in ('vendor', 'device')]
        assert fields['PCI_ID'] == ':'.join(ids)
        assert int(fields['PCI_CLASS'], 16) == int((path / 'class').read_text(), 16)
        assert ('DRIVER' in fields) == (path / 'driver').exists()


def test_mdev_types_respect_max_instance(built: Description) -> None:
    for vgpu_type in built.root.glob('sys/devices/**/mdev_supported_types/*'):
        maximum = re.search(
            r'max_instance=(\d+)', (vgpu_type / 'description').read_text()
        )
        created = len(list((vgpu_type / 'devices').iterdir()))
        available = int((vgpu_type / 'available_instances').read_text())
        assert maximum
        assert available + created <= int(maximum[1])


def test_expected_handles_exist_in_tree(built: Description) -> None:
    for expected in built.expect['devices']:
        if 'handles' in expected:
            info = json.loads(expected['handles'][2])
            address = '{domain}:{bus}:{device}.{function}'.format(**info)
            assert address in built.functions


@pytest.mark.parametrize(
    ('distance', 'address'),
    [(2, '0000:22:1f.2'), (8, '0000:23:00.0'), (17, '0000:23:01.1')],
)
def test_virtual_address_crosses_bus_boundary(distance: int, address: str) -> None:
    assert virtual_address('0000:22:1f.0', distance) == address


def test_main_builds_and_prints_description(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sysfs_tree.main(['t4-mdev', str(tmp_path / 'new')]) == 0
    assert 'Tesla T4' in capsys.readouterr().out
    assert (tmp_path / 'new/sys/bus/pci/devices/0000:3b:00.0/vendor').exists()


def test_main_unknown_host_lists_hosts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sysfs_tree.main(['no-such-host', str(tmp_path)]) == 2
    assert 'qat-x710' in capsys.readouterr().err


def test_build_twice_gives_same_tree(tmp_path: Path) -> None:
    first = sysfs_tree.build('qat-x710', tmp_path)
    before = sorted(tmp_path.rglob('*'))
    assert sysfs_tree.build('qat-x710', tmp_path) == first
    assert sorted(tmp_path.rglob('*')) == before
