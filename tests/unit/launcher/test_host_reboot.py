# SPDX-License-Identifier: Apache-2.0
"""Tests of ``--reboot-host`` without a service; the launcher tests run the real one."""

from pathlib import Path

import pytest

from devstack.launcher import host_reboot, paths
from devstack.launcher.failure import LaunchFailed


def test_read_endpoint_returns_port_of_configuration(top: Path) -> None:
    paths.CONFIG.parent.mkdir(parents=True)
    paths.CONFIG.write_text('[api]\nport = 7777\n[pci_driver]\na = 1\na = 2%\n')
    assert host_reboot._read_endpoint() == 'http://127.0.0.1:7777'


def test_wait_until_timeout_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_reboot, '_TIMEOUT', 0.0)
    with pytest.raises(LaunchFailed, match='the boot is missing'):
        host_reboot._wait_until(lambda: False, 'the boot')
