# SPDX-License-Identifier: Apache-2.0
"""Devices that the agent must change, with and without a privileges file."""

from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.inventory.privilege_check import PrivilegeCheck
from cyborg_lite.db.attention import list_attention
from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.inventory import reports
from cyborg_lite.drivers.host.kernel import PCI_DEVICES
from cyborg_lite.drivers.host.privileges import DIRECTORY
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.attention import AttentionKind
from cyborg_lite.model.inventory.host_report import DiscoveryResult, Health, HostReport
from tests.builders.reports import host as build_report
from tests.hosts.privileged_process import install_privileges
from tests.servers.databases import database_fixture

database = database_fixture('sqlite')


@pytest.fixture
def result(tmp_path: Path) -> DiscoveryResult:
    """Return a scan of an NVIDIA card whose handles the agent prepares."""
    (device,) = build_report(1, 1).devices
    handles = tuple(replace(item, needs_host=True) for item in device.root.handles)
    device = replace(device, root=replace(device.root, handles=handles))
    function = tmp_path / PCI_DEVICES / device.control_address
    function.mkdir(parents=True)
    (function / 'vendor').write_text('0x10de\n')
    (function / 'class').write_text('0x030200\n')
    address, driver = device.control_address, 'nvidia_gpu_driver'
    return DiscoveryResult(address, '10de:2236', '030200', driver, 'offered', device)


def test_device_without_privileges_is_degraded_and_listed(
    result: DiscoveryResult,
    database: Database,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    check = PrivilegeCheck(Host('compute-1', tmp_path))
    amended = [check.amend(result) for _ in range(2)]
    device = amended[1].device
    assert device is not None
    assert device.health is Health.DEGRADED
    assert 'install the privileges file of nvidia_gpu_driver' in device.health_reason
    assert caplog.text.count(device.health_reason) == 1
    report = HostReport('compute-1', 'boot', (device,))
    database.write(reports.store_report, report)
    items = {item.kind: item for item in database.read(list_attention)}
    assert items[AttentionKind.MISSING_PRIVILEGE].hostname == 'compute-1'
    assert items[AttentionKind.MISSING_PRIVILEGE].reason == device.health_reason
    install_privileges(tmp_path)
    assert check.amend(result) == result


def test_device_that_agent_does_not_change_needs_no_privileges(
    result: DiscoveryResult, tmp_path: Path
) -> None:
    (device,) = build_report(1, 1).devices
    plain = replace(result, device=device)
    assert PrivilegeCheck(Host('compute-1', tmp_path)).amend(plain) == plain


def test_unreadable_file_ends_no_scan(result: DiscoveryResult, tmp_path: Path) -> None:
    install_privileges(tmp_path)
    link = tmp_path / DIRECTORY / 'other.conf'
    link.symlink_to('removed')
    check = PrivilegeCheck(Host('compute-1', tmp_path))
    device = check.amend(result).device
    assert device is not None
    assert device.health is Health.DEGRADED
    link.unlink()
    assert check.amend(result) == result
