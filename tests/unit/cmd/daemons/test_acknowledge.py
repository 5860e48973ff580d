# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-agent acknowledge``."""

from pathlib import Path

import pytest

from cyborg_lite.agent.inventory.device_health import DeviceHealth, list_reached
from cyborg_lite.agent.inventory.health_rule_files import load_rules
from cyborg_lite.cmd.daemons import agent
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.model.devices.telemetry import Usage

_CARD = '0000:3b:00.0'
_FAILED = Usage(counters={'fatal': 1})


@pytest.fixture
def errors(tmp_path: Path) -> DeviceHealth:
    """Return the errors of an agent whose card has failed."""
    health = DeviceHealth(tmp_path, load_rules(), Host('compute-1', tmp_path))
    health.count(_CARD, _FAILED)
    assert list_reached(tmp_path, load_rules())
    return health


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    file = tmp_path / 'agent.conf'
    file.write_text(f'[agent]\nstate_path = {tmp_path}\n')
    return ['acknowledge', '--config-file', str(file)]


def test_acknowledge_reaches_running_agent(
    errors: DeviceHealth, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert agent.main([*arguments, '0000:3B:00.0']) == 0
    assert f'{_CARD} is acknowledged.' in capsys.readouterr().out
    errors.count(_CARD, _FAILED)
    assert agent.main(arguments) == 0
    assert 'No device has errors' in capsys.readouterr().out


def test_acknowledge_without_address_lists_devices(
    errors: DeviceHealth, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert agent.main(arguments) == 0
    assert (
        f'{_CARD}: Fatal PCI errors; the link is unreliable. (rule pci-fatal: '
        in capsys.readouterr().out
    )


@pytest.mark.parametrize('address', ['0000:5e:00.0', '../x', 'card'])
def test_acknowledge_unknown_device_returns_1(
    errors: DeviceHealth,
    arguments: list[str],
    address: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert agent.main([*arguments, address]) == 1
    assert f'{address} has no errors. Known: {_CARD}' in capsys.readouterr().err
