# SPDX-License-Identifier: Apache-2.0
"""Tests of the health that the rules require of a device."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cyborg_lite.agent.inventory import device_health
from cyborg_lite.agent.inventory.device_health import DeviceHealth
from cyborg_lite.agent.inventory.health_rule_files import load_rules
from cyborg_lite.agent.state.journal import NewEvent
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.drivers.kernel_log import LogLine
from cyborg_lite.model.devices.health_rules import Action, Comparison, HealthRules
from cyborg_lite.model.devices.telemetry import MAX_COUNTERS, Usage
from cyborg_lite.model.hosts.events import HostEventKind
from cyborg_lite.model.inventory.host_report import Health
from tests.doubles.drivers import discovery_result
from tests.doubles.rebootable_host import boot

_CARD = '0000:3b:00.0'
_HOUR = 3600.0


class Site:
    """Signals of one host with a clock that tests set."""

    def __init__(self, directory: Path) -> None:
        self.now = 1000.0
        self.events: list[NewEvent] = []
        self.state_path = directory / 'state'
        self._root = directory / 'root'
        self.boot('b1')
        self.restart()

    def boot(self, boot_id: str) -> None:
        boot(self._root, boot_id)

    def restart(self, rules: HealthRules | None = None) -> None:
        host = Host('compute-1', self._root)
        rules = rules or load_rules()
        self.health = DeviceHealth(self.state_path, rules, host, lambda: self.now)
        self.health.report = self.events.append

    def read(self, address: str = _CARD, /, **counters: int) -> Health:
        """Count the signals of a card and return its health."""
        self.health.count(address, Usage(counters=counters))
        return self.assess(address)

    def assess(self, address: str = _CARD, health: Health = Health.OK) -> Health:
        """Return the health of a card.

        :param health: as the driver has reported it
        """
        result = discovery_result(address)
        assert result.device is not None
        device = replace(result.device, health=health)
        device_with_rules = self.health.amend(replace(result, device=device)).device
        assert device_with_rules is not None
        return device_with_rules.health

    def log(self, *lines: LogLine) -> None:
        """Let the agent read a kernel log that ends with the lines."""

        def read(after: int) -> Sequence[LogLine]:
            return [line for line in lines if line[0] > after]

        self.health.read_log(read)

    def acknowledge(self) -> None:
        device_health.acknowledge(self.state_path, _CARD)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def xid(number: int, record: int = 1, seconds: float = 999.0) -> LogLine:
    return record, seconds, f'NVRM: Xid (PCI:0000:3b:00): {number}, pid=7, text'


# --- rises ---


def test_few_corrected_errors_are_no_fault(site: Site) -> None:
    site.read(correctable=0, nonfatal=0)
    assert site.read(correctable=999, nonfatal=9) is Health.OK
    site.now += _HOUR + 1
    assert site.read(correctable=1998, nonfatal=18) is Health.OK


def test_errors_before_first_read_count_if_fatal(site: Site) -> None:
    assert site.read(correctable=10**6, nonfatal=50) is Health.OK
    assert site.read('0000:5e:00.0', fatal=1) is Health.FAILED


def test_acknowledged_errors_end_until_next_error(site: Site) -> None:
    site.read(fatal=2)
    site.acknowledge()
    assert site.read(fatal=2) is Health.OK
    assert site.read(fatal=3) is Health.FAILED


def test_restart_keeps_errors(site: Site) -> None:
    site.read(fatal=1)
    site.now += 60
    site.restart()
    assert site.assess() is Health.FAILED
    site.acknowledge()
    site.restart()
    assert site.read(fatal=1) is Health.OK


def test_reboot_clears_errors(site: Site) -> None:
    assert site.read(fatal=1) is Health.FAILED
    site.boot('')  # unreadable
    assert site.assess() is Health.FAILED
    site.boot('b2')
    assert site.read(fatal=0) is Health.OK


def test_worse_health_of_driver_stays(site: Site) -> None:
    site.read(fatal=1)
    assert site.assess(health=Health.GONE) is Health.GONE
    assert site.assess(health=Health.DEGRADED) is Health.FAILED


def test_many_rises_stay_bounded_and_count(site: Site) -> None:
    site.read(nonfatal=0)
    for number in range(1, 300):
        site.read(nonfatal=number)
    content = (site.state_path / 'device_health.json').read_text()
    assert content.count('[1000.0,') <= 100
    assert site.assess() is Health.WITHHELD


def test_damaged_file_is_ignored(site: Site) -> None:
    site.state_path.mkdir()
    file = site.state_path / 'device_health.json'
    file.write_text('{"v": 1, "content": {"devices": [1]}}')
    assert site.read(fatal=1) is Health.FAILED
    assert list(device_health.list_reached(site.state_path, load_rules())) == [_CARD]


# --- each rule ---


@pytest.mark.parametrize('name', load_rules().rules)
def test_rule_begins_at_threshold_and_ends(site: Site, name: str) -> None:
    rule = load_rules().rules[name]
    begin = rule.threshold + 1 if rule.comparison is Comparison.DROP else 0
    sign = -1 if rule.comparison is Comparison.DROP else 1
    site.read(**{rule.signal: begin})
    assert site.read(**{rule.signal: begin + sign * (rule.threshold - 1)}) is Health.OK
    site.read(**{rule.signal: begin + sign * rule.threshold})
    assert site.assess() is rule.health
    requests = [item for item in site.events if f'(rule {name}:' in item.reason]
    is_reported = rule.action in (Action.NOTE, Action.RESET, Action.QUARANTINE)
    assert len(requests) == is_reported
    if rule.action is Action.RESET:
        site.health.record_reset(_CARD, '')
    site.now += rule.window + 1
    site.read(**{rule.signal: begin})
    assert site.assess() is Health.OK


# --- states ---


def test_unreadable_state_ends_no_rule(site: Site) -> None:
    assert site.read(row_remap_pending=1) is Health.DEGRADED
    site.now += 30 * _HOUR
    assert site.read() is Health.DEGRADED
    assert site.read(row_remap_pending=0) is Health.OK


def test_dropped_link_stays_after_restart(site: Site) -> None:
    assert site.read(nvlinks_active=18) is Health.OK
    site.restart()
    assert site.read(nvlinks_active=17) is Health.WITHHELD


# --- kernel log ---


def test_log_line_counts_once_across_restart(site: Site) -> None:
    site.log(xid(79))
    site.restart()
    site.log(xid(79))
    (event,) = site.events
    assert (event.kind, event.address) == (HostEventKind.QUARANTINE, _CARD)
    assert 'fallen off the bus' in event.reason
    site.log(xid(79), xid(79, record=2))
    assert len(site.events) == 2


def test_log_of_new_boot_begins_anew(site: Site) -> None:
    site.log(xid(74, record=9))
    assert site.assess() is Health.WITHHELD
    site.boot('b2')
    site.log(xid(74, record=1))
    assert site.assess() is Health.WITHHELD


def test_old_log_line_does_not_count(site: Site) -> None:
    site.now = 5000.0
    site.log(xid(48, seconds=1000.0))
    assert site.assess() is Health.OK


def test_unreadable_log_changes_no_device(site: Site) -> None:
    def read(after: int) -> Sequence[LogLine]:
        raise PermissionError

    site.log(xid(74))
    site.health.read_log(read)
    assert site.assess() is Health.WITHHELD


def test_counters_of_log_stay_within_limit(site: Site) -> None:
    site.log(*(xid(13, record) for record in range(1, 4)), xid(31, 4))
    usage = Usage(counters={f'c{n:02}': n for n in range(MAX_COUNTERS - 1)})
    counters = site.health.count(_CARD, usage).counters
    assert counters == {**usage.counters, 'xid_13': 3}


# --- resets ---


def list_kinds(site: Site) -> list[HostEventKind]:
    return [event.kind for event in site.events]


def test_transient_xid_withholds_until_proven_reset(site: Site) -> None:
    site.log(xid(119))
    assert site.assess() is Health.WITHHELD
    assert list_kinds(site) == [HostEventKind.RESET]
    site.now += 48 * _HOUR
    site.restart()
    assert site.assess() is Health.WITHHELD  # no time ends the rule
    site.health.record_reset(_CARD, '')
    assert site.assess() is Health.OK
    assert list_kinds(site) == [HostEventKind.RESET]


def test_failed_reset_is_quarantine(site: Site) -> None:
    site.health.record_reset(_CARD, 'its BARs have changed')
    site.log(xid(119))
    site.health.record_reset(_CARD, 'its BARs have changed')
    assert site.assess() is Health.WITHHELD
    assert list_kinds(site) == [HostEventKind.RESET, HostEventKind.QUARANTINE]
    assert site.events[-1].reason == 'Its reset has failed: its BARs have changed'


@pytest.mark.parametrize(
    ('hours', 'kind'), [(1, HostEventKind.QUARANTINE), (25, HostEventKind.RESET)]
)
def test_error_after_reset_is_quarantine(
    site: Site, hours: int, kind: HostEventKind
) -> None:
    site.log(xid(48))
    site.health.record_reset(_CARD, '')
    site.now += hours * _HOUR
    site.restart()
    site.log(xid(48), xid(48, 2, site.now))
    assert list_kinds(site) == [HostEventKind.RESET, kind]
    assert site.assess() is Health.WITHHELD


def test_acknowledged_device_needs_no_reset(site: Site) -> None:
    site.log(xid(119))
    site.acknowledge()
    assert site.assess() is Health.OK


# --- the data ---

_LINES = {
    'nvidia-xid': ('NVRM: Xid (PCI:0000:3b:00): 79, pid=7, GPU has fallen', 'xid_79'),
    'reset-failed': (
        'vfio-pci 0000:3b:00.0: not ready 65535ms after FLR; giving up',
        'reset_failed',
    ),
    'inaccessible': (
        'nvidia 0000:3b:00.0: Unable to change power state from D3cold to D0, '
        'device inaccessible',
        'inaccessible',
    ),
    'aer-not-recovered': (
        "nvidia 0000:3b:00.0: AER: can't recover (no error_detected callback)",
        'aer_not_recovered',
    ),
    'amdgpu-ras': (
        'amdgpu 0000:3b:00.0: amdgpu: 2 new uncorrectable hardware errors detected',
        'log_ras_uncorrected',
    ),
    'amdgpu-reset-failed': (
        'amdgpu 0000:3b:00.0: amdgpu: GPU reset end with ret = -62',
        'reset_failed',
    ),
}


@pytest.mark.parametrize('name', load_rules().lines)
def test_shipped_pattern_counts_line_of_kernel(name: str) -> None:
    text, signal = _LINES[name]
    match = load_rules().lines[name].match(text)
    assert match is not None
    assert match[0] in (_CARD, _CARD.removesuffix('.0'))
    assert match[1] == signal
    # Some rule compares the signal.
    assert signal in {rule.signal for rule in load_rules().rules.values()}
