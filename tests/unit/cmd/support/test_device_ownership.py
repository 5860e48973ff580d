# SPDX-License-Identifier: Apache-2.0
"""Tests of the owners of devices by the configuration of the agent."""

from pathlib import Path

import pytest

from cyborg_lite import conf as configuration
from cyborg_lite.agent.ownership.ownership import Ownership
from cyborg_lite.cmd.support.device_ownership import build_ownership
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.daemons import ConfigurationError
from tests.doubles.drivers import discovery_result

ADDRESS = '0000:01:00.0'


def build(directory: Path, *options: str) -> Ownership:
    """Return the ownership with lines of the section ``[agent]``."""
    path = directory / 'cyborg-lite.conf'
    path.write_text('\n'.join(('[agent]', *options)))
    conf = configuration.parse(['--config-file', str(path)], 'cyborg-lite-agent')
    return build_ownership(conf, Host('compute-1', directory / 'none'))


def test_ownership_reads_excluded_devices(tmp_path: Path) -> None:
    result = build(tmp_path, f'excluded_devices = {ADDRESS}').amend(
        discovery_result(ADDRESS)
    )
    assert result.device is None
    assert 'excluded_devices' in result.reason


def test_ownership_reads_files_of_nova(tmp_path: Path) -> None:
    nova_conf = tmp_path / 'nova.conf'
    nova_conf.write_text(f'[pci]\ndevice_spec = {{"address": "{ADDRESS}"}}\n')
    option = f'nova_config_files = {nova_conf}'
    result = build(tmp_path, option).amend(discovery_result(ADDRESS))
    assert result.device is not None
    assert '[pci] device_spec' in result.device.health_reason


def test_ownership_invalid_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / 'owners.yaml'
    path.write_text('[')
    with pytest.raises(ConfigurationError, match=r'owners\.yaml'):
        build(tmp_path, f'ownership_file = {path}')
