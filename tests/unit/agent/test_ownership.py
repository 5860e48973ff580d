# SPDX-License-Identifier: Apache-2.0
"""What an operator left to others, and what Nova is configured to take."""

from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.ownership import Ownership
from cyborg_lite.drivers.nvidia_gpu import NvidiaGpu
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.model.inventory import Finding, Health
from tests.fakes import sysfs_tree
from tests.fakes.drivers import finding

ADDRESS = '0000:01:00.0'


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host('compute-1', tmp_path / 'none')


@pytest.fixture
def nova_conf(tmp_path: Path) -> Path:
    return tmp_path / 'nova.conf'


def ownership(host: Host, *nova_files: Path, left: tuple[str, ...] = ()) -> Ownership:
    return Ownership(host, [str(path) for path in nova_files], left)


def health(found: Finding) -> Health:
    assert found.device is not None
    return found.device.health


def give(nova_conf: Path, spec: str) -> None:
    nova_conf.write_text(f'[pci]\ndevice_spec = {spec}\n')


@pytest.mark.parametrize('word', [ADDRESS, '10de:1eb8', '10DE:1EB8'])
def test_a_device_left_to_others_is_not_reported(host: Host, word: str) -> None:
    found = ownership(host, left=(word,)).amended(finding(ADDRESS))
    assert found.device is None
    assert 'excluded_devices' in found.reason


def test_others_are_as_they_were(host: Host, nova_conf: Path) -> None:
    give(nova_conf, '{"address": "0000:02:00.0"}')
    owned = ownership(host, nova_conf, left=('0000:03:00.0',))
    for each in (finding(ADDRESS), finding(ADDRESS, offered=False)):
        assert owned.amended(each) == each


def test_a_device_that_nova_has_is_contested_and_both_are_named(
    host: Host, nova_conf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    give(nova_conf, '{"address": "0000:01:00.0"}')
    owned = ownership(host, nova_conf)
    whole = finding(ADDRESS).device
    assert whole is not None
    for _ in range(2):
        found = owned.amended(finding(ADDRESS))
        assert found.device is not None
        assert found.device.root == whole.root
        assert found.device.health is Health.CONFLICT
        assert 'driver NVIDIA' in found.device.health_reason
        assert '[pci] device_spec' in found.device.health_reason
    assert caplog.text.count('is not offered') == 1


def test_a_change_of_nova_is_noticed_both_ways(host: Host, nova_conf: Path) -> None:
    owned = ownership(host, nova_conf)
    assert health(owned.amended(finding(ADDRESS))) is Health.OK
    give(nova_conf, '{"vendor_id": "10de"}')
    assert health(owned.amended(finding(ADDRESS))) is Health.CONFLICT
    give(nova_conf, '{"vendor_id": "8086", "product_id": "*"}')
    assert health(owned.amended(finding(ADDRESS))) is Health.OK


def test_a_directory_is_read_in_the_order_of_its_names(
    host: Host, tmp_path: Path
) -> None:
    (tmp_path / 'a.conf').write_text('[pci]\n')
    (tmp_path / 'b.conf').write_text('[pci]\ndevice_spec = {"vendor_id": "10de"}')
    (tmp_path / 'c.txt').write_text('no configuration')
    owned = ownership(host, tmp_path)
    assert health(owned.amended(finding(ADDRESS))) is Health.CONFLICT


def test_a_file_that_cannot_be_read_is_told_once_and_claims_nothing(
    host: Host, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    owned = ownership(host, tmp_path / 'absent.conf')
    for _ in range(3):
        assert health(owned.amended(finding(ADDRESS))) is Health.OK
    assert caplog.text.count('is not known') == 1


def test_an_entry_without_sense_is_told(
    host: Host, nova_conf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    give(nova_conf, '{')
    ownership(host, nova_conf).amended(finding(ADDRESS))
    assert 'without sense: [pci] device_spec = {' in caplog.text


def test_a_reason_is_as_long_as_its_column_at_most(host: Host, nova_conf: Path) -> None:
    give(nova_conf, '{"vendor_id": "10de", "tag": "' + 'x' * 300 + '"}')
    found = ownership(host, nova_conf).amended(finding(ADDRESS))
    assert found.device is not None
    assert len(found.device.health_reason) == 255


def cards(tmp_path: Path, name: str) -> tuple[Host, list[Finding]]:
    built = sysfs_tree.build(name, tmp_path / 'host')
    host = Host('compute-1', built.root)
    return host, [one for one in NvidiaGpu(host, {}).discover() if one.device]


@pytest.mark.parametrize(
    ('line', 'contested'),
    [
        ('[pci]\ndevice_spec = {"vendor_id": "10de", "product_id": "1eb8"}', True),
        ('[pci]\ndevice_spec = {"vendor_id": "8086"}', False),
        ('[devices]\nenabled_mdev_types = nvidia-222', True),
        ('[devices]\nenabled_mdev_types = nvidia-9999', False),
    ],
)
def test_ids_and_types_are_those_of_the_host(
    tmp_path: Path, nova_conf: Path, line: str, contested: bool
) -> None:
    host, found = cards(tmp_path, 't4-mdev')
    nova_conf.write_text(line)
    owned = ownership(host, nova_conf)
    assert found
    healths = {health(owned.amended(one)) is Health.CONFLICT for one in found}
    assert (True in healths) is contested


def test_the_health_of_a_sick_device_is_not_forgotten_for_long(
    host: Host, nova_conf: Path
) -> None:
    sick = finding(ADDRESS)
    assert sick.device is not None
    failed = replace(sick, device=replace(sick.device, health=Health.FAILED))
    give(nova_conf, '{"vendor_id": "10de"}')
    owned = ownership(host, nova_conf)
    assert health(owned.amended(failed)) is Health.CONFLICT
    nova_conf.write_text('')
    assert health(owned.amended(failed)) is Health.FAILED
