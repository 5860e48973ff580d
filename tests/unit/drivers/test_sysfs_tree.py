# SPDX-License-Identifier: Apache-2.0
"""The fabricated hosts hold together as the kernel's trees do."""

import json
import os
import re
from pathlib import Path

import pytest

from tests.fakes import sysfs_tree
from tests.fakes.sysfs_functions import virtual_address
from tests.fakes.sysfs_tree import Description


@pytest.fixture(scope='module', params=sysfs_tree.hosts())
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Description:
    name: str = request.param
    return sysfs_tree.build(name, tmp_path_factory.mktemp(name))


def _links(root: Path) -> list[Path]:
    return [path for path in root.rglob('*') if path.is_symlink()]


def test_every_link_is_relative_and_ends_inside_the_tree(built: Description) -> None:
    root = built.root.resolve()
    links = _links(built.root)
    assert links
    for link in links:
        assert not os.readlink(link).startswith('/'), link
        assert link.resolve(strict=True).is_relative_to(root), link


def test_physical_and_virtual_functions_point_at_one_another(
    built: Description,
) -> None:
    for address, directory in built.functions.items():
        here = built.root / directory
        enabled = sorted(here.glob('virtfn*'))
        for link in enabled:
            assert (link.resolve() / 'physfn').resolve().name == address
        count = here / 'sriov_numvfs'
        if count.exists():
            assert int(count.read_text()) == len(enabled)


def test_groups_list_the_functions_that_name_them(built: Description) -> None:
    groups = built.root / 'sys/kernel/iommu_groups'
    named = {
        (link.resolve().name, address)
        for address, directory in built.functions.items()
        if (link := built.root / directory / 'iommu_group').exists()
    }
    listed = {
        (entry.parent.parent.name, entry.name)
        for entry in groups.glob('*/devices/*')
        if re.match('[0-9a-f]{4}:', entry.name)
    }
    assert named == listed


def test_uevent_agrees_with_the_id_files(built: Description) -> None:
    for directory in built.functions.values():
        here = built.root / directory
        fields = dict(
            line.split('=', 1) for line in (here / 'uevent').read_text().splitlines()
        )
        ids = [(here / name).read_text()[2:6].upper() for name in ('vendor', 'device')]
        assert fields['PCI_ID'] == ':'.join(ids)
        assert int(fields['PCI_CLASS'], 16) == int((here / 'class').read_text(), 16)
        assert ('DRIVER' in fields) == (here / 'driver').exists()


def test_no_type_has_more_instances_than_it_may(built: Description) -> None:
    for kind in built.root.glob('sys/devices/**/mdev_supported_types/*'):
        found = re.search(r'max_instance=(\d+)', (kind / 'description').read_text())
        created = len(list((kind / 'devices').iterdir()))
        available = int((kind / 'available_instances').read_text())
        assert found
        assert available + created <= int(found[1])


def test_every_expected_handle_is_a_function_of_the_tree(built: Description) -> None:
    for expected in built.expect['devices']:
        if 'handles' in expected:
            info = json.loads(expected['handles'][2])
            address = '{domain}:{bus}:{device}.{function}'.format(**info)
            assert address in built.functions


@pytest.mark.parametrize(
    ('distance', 'address'),
    [(2, '0000:22:1f.2'), (8, '0000:23:00.0'), (17, '0000:23:01.1')],
)
def test_virtual_functions_run_over_onto_the_next_bus(
    distance: int, address: str
) -> None:
    assert virtual_address('0000:22:1f.0', distance) == address


def test_the_command_builds_and_says_what(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sysfs_tree.main(['t4-mdev', str(tmp_path / 'new')]) == 0
    assert 'Tesla T4' in capsys.readouterr().out
    assert (tmp_path / 'new/sys/bus/pci/devices/0000:3b:00.0/vendor').exists()


def test_the_command_lists_the_hosts_when_it_does_not_know_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sysfs_tree.main(['no-such-host', str(tmp_path)]) == 2
    assert 'qat-x710' in capsys.readouterr().err


def test_building_twice_gives_the_same_tree(tmp_path: Path) -> None:
    first = sysfs_tree.build('qat-x710', tmp_path)
    before = sorted(tmp_path.rglob('*'))
    assert sysfs_tree.build('qat-x710', tmp_path) == first
    assert sorted(tmp_path.rglob('*')) == before
