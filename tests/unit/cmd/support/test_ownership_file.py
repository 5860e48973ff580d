# SPDX-License-Identifier: Apache-2.0
"""The ownership file in YAML, and its changes while a daemon runs."""

import os
from pathlib import Path

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.agent.ownership.ownership import Ownership
from cyborg_lite.cmd.support.ownership_file import (
    OwnershipFile,
    build_ownership,
    read_plan,
)
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.model.ownership.plan import OwnershipPlan
from tests.doubles.drivers import discovery_result

# YAML reads an address with decimal digits only as a number.
CARD = '0000:41:00.0'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / 'ownership.yaml'
    path.write_text(f'compute-1:\n  {CARD}: nova\n')
    return path


def owner(plan: OwnershipPlan) -> str:
    rule = plan.find_rule('compute-1', CARD, '10de:1eb8')
    return rule.owner if rule else ''


def test_read_plan_unquoted_address_is_text(file: Path) -> None:
    assert owner(read_plan(str(file))) == 'nova'


@pytest.mark.parametrize('text', ['a: [', 'compute-1: nova', '\x00'])
def test_read_plan_invalid_file_raises(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigurationError, match='wnership file'):
        read_plan(str(file))


def test_missing_file_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match='cannot be read'):
        OwnershipFile(str(tmp_path / 'absent'))


def test_no_file_states_no_owner() -> None:
    assert OwnershipFile('').read() == OwnershipPlan()


def test_changed_file_is_read_again(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ownership = OwnershipFile(str(file))
    assert owner(ownership.read()) == 'nova'
    file.write_text(f'compute-1:\n  {CARD}: nobody\n')
    assert owner(ownership.read()) == 'nobody'
    file.write_text('compute-1: nova')
    for _ in range(2):
        assert owner(ownership.read()) == 'nobody'
    assert caplog.text.count('Ignoring the changed ownership file') == 1
    os.unlink(file)
    assert owner(ownership.read()) == 'nobody'


def build(directory: Path, *options: str) -> Ownership:
    """Return the ownership with lines of the section ``[agent]``."""
    path = directory / 'cyborg-lite.conf'
    path.write_text('\n'.join(('[agent]', *options)))
    conf = configuration.parse(['--config-file', str(path)], 'cyborg-lite-agent')
    return build_ownership(conf, Host('compute-1', directory / 'none'))


def test_ownership_reads_excluded_devices(tmp_path: Path) -> None:
    result = build(tmp_path, f'excluded_devices = {CARD}').amend(discovery_result(CARD))
    assert result.device is None
    assert 'excluded_devices' in result.reason


def test_ownership_reads_files_of_nova(tmp_path: Path) -> None:
    nova_conf = tmp_path / 'nova.conf'
    nova_conf.write_text(f'[pci]\ndevice_spec = {{"address": "{CARD}"}}\n')
    option = f'nova_config_files = {nova_conf}'
    result = build(tmp_path, option).amend(discovery_result(CARD))
    assert result.device is not None
    assert '[pci] device_spec' in result.device.health_reason
