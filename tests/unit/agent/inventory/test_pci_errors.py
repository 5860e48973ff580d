# SPDX-License-Identifier: Apache-2.0
"""Tests of the health that PCI errors cause."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from cyborg_lite.agent.inventory import pci_errors
from cyborg_lite.agent.inventory.pci_errors import PciErrorLimits, PciErrors
from cyborg_lite.model.devices.telemetry import Usage
from cyborg_lite.model.inventory.host_report import Health

_CARD = '0000:3b:00.0'
_HOUR = 3600.0


class Site:
    """Errors of one host with a clock that tests set."""

    def __init__(self, state_path: Path) -> None:
        self.now = 1000.0
        self._state_path = state_path
        self.restart()

    def restart(self, limits: PciErrorLimits | None = None) -> None:
        limits = limits or PciErrorLimits()
        self._errors = PciErrors(self._state_path, limits, lambda: self.now)

    def read(self, *, health: Health = Health.OK, **counters: int) -> Usage:
        """Return the assessed telemetry of the card.

        :param health: as the driver has reported it
        """
        return self.read_of(_CARD, 'b1', health, counters)

    def read_of(
        self,
        address: str,
        boot_id: str,
        health: Health,
        counters: Mapping[str, int],
    ) -> Usage:
        reason = 'link' if health is not Health.OK else ''
        usage = Usage(health, reason, counters=counters)
        return self._errors.assess(boot_id, address, usage)

    def acknowledge(self) -> None:
        pci_errors.acknowledge(self._state_path, _CARD)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_few_corrected_errors_are_no_fault(site: Site) -> None:
    site.read(correctable=0, nonfatal=0)
    assert site.read(correctable=999, nonfatal=9).health is Health.OK
    site.now += _HOUR + 1
    assert site.read(correctable=1998, nonfatal=18).health is Health.OK


def test_errors_before_first_read_count_if_fatal(site: Site) -> None:
    assert site.read(correctable=10**6, nonfatal=50).health is Health.OK
    second_address = '0000:5e:00.0'
    usage = site.read_of(second_address, 'b1', Health.OK, {'fatal': 1})
    assert usage.health is Health.FAILED


def test_acknowledged_errors_end_until_next_error(site: Site) -> None:
    site.read(fatal=2)
    site.acknowledge()
    assert site.read(fatal=2).health is Health.OK
    assert site.read(fatal=3).health is Health.FAILED


def test_restart_keeps_errors(site: Site) -> None:
    reason = site.read(fatal=1).reason
    site.now += 60
    site.restart()
    assert site.read(fatal=1).reason == reason
    site.acknowledge()
    site.restart()
    assert site.read(fatal=1).health is Health.OK


def test_reboot_clears_errors(site: Site) -> None:
    assert site.read(fatal=1).health is Health.FAILED
    assert site.read_of(_CARD, 'b2', Health.OK, {'fatal': 0}).health is Health.OK


def test_worse_health_of_driver_stays(site: Site) -> None:
    reading = site.read(health=Health.GONE, fatal=1)
    assert (reading.health, reading.reason) == (Health.GONE, 'link')
    assert site.read(health=Health.DEGRADED, fatal=1).health is Health.FAILED


def test_limit_0_ignores_errors(site: Site) -> None:
    site.restart(PciErrorLimits(fatal=0))
    assert site.read(fatal=9).health is Health.OK


def test_damaged_file_is_ignored(site: Site, tmp_path: Path) -> None:
    (tmp_path / 'pci_errors.json').write_text('{"v": 1, "content": {"devices": [1]}}')
    assert site.read(fatal=1).health is Health.FAILED
    assert list(pci_errors.list_unhealthy(tmp_path)) == [_CARD]
