# SPDX-License-Identifier: Apache-2.0
"""Tests of devices that the operator excludes or that Nova is configured to use."""

from pathlib import Path

import pytest

from cyborg_lite.agent.ownership.ownership import Ownership
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.nvidia.driver import NvidiaGpu
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.inventory.host_report import DiscoveryResult, Health
from cyborg_lite.model.ownership.plan import parse_plan
from tests.doubles.drivers import discovery_result
from tests.hosts import sysfs_tree

ADDRESS = '0000:01:00.0'


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host('compute-1', tmp_path / 'none')


@pytest.fixture
def nova_conf(tmp_path: Path) -> Path:
    return tmp_path / 'nova.conf'


def build_ownership(
    host: Host, *nova_files: Path, excluded: tuple[str, ...] = ()
) -> Ownership:
    return Ownership(host, [str(path) for path in nova_files], excluded)


def health(result: DiscoveryResult) -> Health:
    assert result.device is not None
    return result.device.health


def write_device_spec(nova_conf: Path, spec: str) -> None:
    nova_conf.write_text(f'[pci]\ndevice_spec = {spec}\n')


@pytest.mark.parametrize('word', ['3b:00.0', '0000:3b:00', '10de', '0x10de:0x1eb8'])
def test_excluded_device_that_is_no_address_is_refused(host: Host, word: str) -> None:
    with pytest.raises(ConfigurationError, match=f'{word} in .agent. excluded_devices'):
        build_ownership(host, excluded=(word,))


def test_excluded_target_of_other_form_is_not_reported(host: Host) -> None:
    address = 'nvmf-nqn.2016-06.io.spdk:disk1'
    result = build_ownership(host, excluded=(address,)).amend(discovery_result(address))
    assert result.device is None


@pytest.mark.parametrize(
    'word', [ADDRESS, '00000000:01:00.0', '10de:1eb8', '10DE:1EB8']
)
def test_excluded_device_is_not_reported(host: Host, word: str) -> None:
    result = build_ownership(host, excluded=(word,)).amend(discovery_result(ADDRESS))
    assert result.device is None
    assert 'excluded_devices' in result.reason


def test_unrelated_results_are_unchanged(host: Host, nova_conf: Path) -> None:
    write_device_spec(nova_conf, '{"address": "0000:02:00.0"}')
    ownership = build_ownership(host, nova_conf, excluded=('0000:03:00.0',))
    for result in (
        discovery_result(ADDRESS),
        discovery_result(ADDRESS, is_offered=False),
    ):
        assert ownership.amend(result) == result


def test_device_of_nova_has_conflict_naming_both(
    host: Host, nova_conf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_device_spec(nova_conf, '{"address": "0000:01:00.0"}')
    ownership = build_ownership(host, nova_conf)
    device = discovery_result(ADDRESS).device
    assert device is not None
    for _ in range(2):
        result = ownership.amend(discovery_result(ADDRESS))
        assert result.device is not None
        assert result.device.root == device.root
        assert result.device.health is Health.CONFLICT
        assert 'driver NVIDIA' in result.device.health_reason
        assert '[pci] device_spec' in result.device.health_reason
    assert caplog.text.count('is not offered') == 1


def test_changed_nova_config_is_read_again(host: Host, nova_conf: Path) -> None:
    ownership = build_ownership(host, nova_conf)
    assert health(ownership.amend(discovery_result(ADDRESS))) is Health.OK
    write_device_spec(nova_conf, '{"vendor_id": "10de"}')
    assert health(ownership.amend(discovery_result(ADDRESS))) is Health.CONFLICT
    write_device_spec(nova_conf, '{"vendor_id": "8086", "product_id": "*"}')
    assert health(ownership.amend(discovery_result(ADDRESS))) is Health.OK


def test_config_directory_is_read_in_name_order(host: Host, tmp_path: Path) -> None:
    (tmp_path / 'a.conf').write_text('[pci]\n')
    (tmp_path / 'b.conf').write_text('[pci]\ndevice_spec = {"vendor_id": "10de"}')
    (tmp_path / 'c.txt').write_text('no configuration')
    ownership = build_ownership(host, tmp_path)
    assert health(ownership.amend(discovery_result(ADDRESS))) is Health.CONFLICT


def test_conflict_reason_is_truncated_to_column(host: Host, nova_conf: Path) -> None:
    write_device_spec(nova_conf, '{"vendor_id": "10de", "tag": "' + 'x' * 300 + '"}')
    result = build_ownership(host, nova_conf).amend(discovery_result(ADDRESS))
    assert result.device is not None
    assert len(result.device.health_reason) == 255


def cards(tmp_path: Path, name: str) -> tuple[Host, list[DiscoveryResult]]:
    built = sysfs_tree.build(name, tmp_path / 'host')
    host = Host('compute-1', built.root)
    return host, [result for result in NvidiaGpu(host, {}).discover() if result.device]


@pytest.mark.parametrize(
    ('line', 'contested'),
    [
        ('[pci]\ndevice_spec = {"vendor_id": "10de", "product_id": "1eb8"}', True),
        ('[pci]\ndevice_spec = {"vendor_id": "8086"}', False),
        ('[devices]\nenabled_mdev_types = nvidia-222', True),
        ('[devices]\nenabled_mdev_types = nvidia-9999', False),
    ],
)
def test_nova_config_matches_ids_and_mdev_types(
    tmp_path: Path, nova_conf: Path, line: str, contested: bool
) -> None:
    host, results = cards(tmp_path, 't4-mdev')
    nova_conf.write_text(line)
    ownership = build_ownership(host, nova_conf)
    assert results
    healths = {health(ownership.amend(result)) is Health.CONFLICT for result in results}
    assert (True in healths) is contested


# --- ownership file -----------------------------------------------------------------


def build_with_plan(host: Host, nova_conf: Path, owner: str) -> Ownership:
    plan = parse_plan({'compute-*': {ADDRESS: owner}})
    return Ownership(host, [str(nova_conf)], (), (), lambda: plan)


@pytest.mark.parametrize(
    ('case', 'reason'),
    [
        (('nova', True), 'belongs to nova by the ownership file'),
        (('nobody', False), 'belongs to nobody by the ownership file'),
        (('nova', False), 'the configuration of Nova does not contain it'),
        (('nobody', True), 'the configuration of Nova contains [pci] device_spec'),
    ],
)
def test_card_of_other_owner_is_not_reported(
    host: Host,
    nova_conf: Path,
    caplog: pytest.LogCaptureFixture,
    case: tuple[str, bool],
    reason: str,
) -> None:
    owner, is_in_nova = case
    write_device_spec(
        nova_conf, f'{{"vendor_id": "{"10de" if is_in_nova else "1002"}"}}'
    )
    ownership = build_with_plan(host, nova_conf, owner)
    for _ in range(2):
        result = ownership.amend(discovery_result(ADDRESS))
        assert result.device is None
        assert reason in result.reason
    assert caplog.text.count(reason) == int('configuration' in reason)
    second = discovery_result('0000:02:00.0')
    if not is_in_nova:
        assert ownership.amend(second) == second


def test_own_card_that_nova_claims_has_conflict(host: Host, nova_conf: Path) -> None:
    write_device_spec(nova_conf, '{"vendor_id": "10de"}')
    ownership = build_with_plan(host, nova_conf, 'cyborg')
    assert health(ownership.amend(discovery_result(ADDRESS))) is Health.CONFLICT
    nova_conf.write_text('')
    assert health(ownership.amend(discovery_result(ADDRESS))) is Health.OK


def test_plan_without_nova_files_gives_no_verdict(
    host: Host, nova_conf: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ownership = build_with_plan(host, nova_conf, 'nova')
    result = ownership.amend(discovery_result(ADDRESS))
    assert result.reason == 'belongs to nova by the ownership file'
