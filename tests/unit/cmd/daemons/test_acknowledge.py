# SPDX-License-Identifier: Apache-2.0
"""Tests of ``cyborg-lite-agent acknowledge``."""

from pathlib import Path

import pytest

from cyborg_lite.agent.inventory.pci_errors import PciErrorLimits, PciErrors
from cyborg_lite.cmd.daemons import agent
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Health

_CARD = '0000:3b:00.0'
_FAILED = Usage(counters={'fatal': 1})


@pytest.fixture
def errors(tmp_path: Path) -> PciErrors:
    """Return the errors of an agent whose card has failed."""
    pci_errors = PciErrors(tmp_path, PciErrorLimits())
    assert pci_errors.assess('b1', _CARD, _FAILED).health is Health.FAILED
    return pci_errors


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    file = tmp_path / 'agent.conf'
    file.write_text(f'[agent]\nstate_path = {tmp_path}\n')
    return ['acknowledge', '--config-file', str(file)]


def test_acknowledge_reaches_running_agent(
    errors: PciErrors, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert agent.main([*arguments, '0000:3B:00.0']) == 0
    assert f'{_CARD} is acknowledged.' in capsys.readouterr().out
    assert errors.assess('b1', _CARD, _FAILED).health is Health.OK
    assert agent.main(arguments) == 0
    assert 'No device has PCI errors' in capsys.readouterr().out


def test_acknowledge_without_address_lists_devices(
    errors: PciErrors, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert agent.main(arguments) == 0
    assert f'{_CARD}: 1 fatal PCI errors since ' in capsys.readouterr().out


@pytest.mark.parametrize('address', ['0000:5e:00.0', '../x', 'card'])
def test_acknowledge_unknown_device_returns_1(
    errors: PciErrors,
    arguments: list[str],
    address: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert agent.main([*arguments, address]) == 1
    assert f'{address} has no PCI errors. Known: {_CARD}' in capsys.readouterr().err
