# SPDX-License-Identifier: Apache-2.0
"""Assesses devices by the health rules, from counters and from the kernel log.

A count alone is no fault: a card may run for months after one corrected error. The
rules say what the increase within a window, or a state, means. An operator can
acknowledge what has occurred. A signal that cannot be read ends no rule.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from oslo_log import log

from cyborg_lite.agent.state.journal import NewEvent
from cyborg_lite.agent.state.state_file import StateFile
from cyborg_lite.drivers.host.sysfs import Host, pci_address
from cyborg_lite.drivers.kernel_log import LogLine
from cyborg_lite.model.devices.health_rules import (
    Action,
    Comparison,
    HealthRule,
    HealthRules,
)
from cyborg_lite.model.devices.telemetry import MAX_COUNTERS, Usage
from cyborg_lite.model.hosts.events import HostEventKind
from cyborg_lite.model.inventory.host_report import DiscoveryResult, Health

LOG = log.getLogger(__name__)

_FILE: Final = 'device_health.json'
_DIRECTORY: Final = 'acknowledged'  # of the state directory: one empty file per card
_AGAIN: Final = 'It has occurred again after a reset.'
_RESET_HELPS: Final = 86_400.0  # seconds; a rule that holds earlier is a quarantine
_MAX_RECENT: Final = 100  # increases of one signal of a device
_RANKS: Final = (
    Health.OK,
    Health.BUSY,
    Health.DEGRADED,
    Health.WITHHELD,
    Health.FAILED,
    Health.CONFLICT,
    Health.GONE,
)
_EVENTS: Final = {
    Action.NOTE: HostEventKind.NOTED,
    Action.RESET: HostEventKind.RESET,
    Action.QUARANTINE: HostEventKind.QUARANTINE,
}


@dataclass(slots=True)
class _Signals:
    """The signals of one device in this boot of the host, by name."""

    counters: dict[str, int] = field(default_factory=dict)  # as last read
    peaks: dict[str, int] = field(default_factory=dict)  # the largest readings
    # Seconds since boot and increase within the longest window.
    recent: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    since: dict[str, str] = field(default_factory=dict)  # UTC, by rule that holds
    # Names of rules that hold until a reset of the device is proven.
    awaiting_reset: list[str] = field(default_factory=list)
    # Seconds since boot of the last proven reset, by rule that it has ended.
    resets: dict[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Content:
    boot_id: str = ''
    devices: dict[str, _Signals] = field(default_factory=dict)  # by address
    log_number: int = -1  # of the last record of the kernel log that was counted


class DeviceHealth:
    """The signals of all devices, also across restarts of the agent. Thread-safe."""

    def __init__(
        self,
        state_path: Path,
        rules: HealthRules,
        host: Host,
        clock: Callable[[], float] = lambda: time.clock_gettime(time.CLOCK_BOOTTIME),
    ) -> None:
        """Store the arguments; the state is read at the first use.

        :param clock: returns the seconds since the boot of the host
        """
        self._rules = rules
        self._host = host
        self._clock = clock
        self._windows = _list_windows(rules)
        # Signals with a rule that holds after a single increase.
        items = rules.rules.values()
        self._single = {item.signal for item in items if item.threshold == 1}
        self._directory = state_path / _DIRECTORY
        self._file = StateFile(state_path / _FILE, _Content)
        self._guard = threading.Lock()
        self._content: _Content | None = None  # None: not read yet
        # Called with what the conductor must store, before the state is written: an
        # event may be sent twice, and is never lost.
        self.report: Callable[[NewEvent], None] = lambda event: None
        self.on_change: Callable[[], None] = lambda: None  # a rule holds or ends
        self._log_error = ''

    def count(self, address: str, usage: Usage) -> Usage:
        """Count the signals of a device; return its telemetry with all counters."""
        with self._guard:
            content = self._open()
            signals = content.devices.get(address) or _Signals()
            changed = self._count(signals, usage.counters)
            if signals.counters:
                content.devices[address] = signals
            self._finish(content, [address], changed=changed)
            counters = {**signals.counters, **usage.counters}
        ranked = sorted(counters, key=lambda name: (name not in usage.counters, name))
        return replace(usage, counters={n: counters[n] for n in ranked[:MAX_COUNTERS]})

    def read_log(self, read: Callable[[int], Sequence[LogLine]]) -> None:
        """Count the new lines of the kernel log.

        :param read: returns the lines after a record
        """
        with self._guard:
            content = self._open()
            try:
                lines = read(content.log_number)
            except OSError as error:
                self._log_unreadable(str(error))
                return
            self._log_unreadable('')
            addresses = {self._count_line(content, line) for line in lines} - {''}
            if lines:
                self._finish(content, sorted(addresses), changed=True)

    def record_reset(self, address: str, fault: str) -> None:
        """End the rules that a reset of a device ends, or quarantine the device.

        :param fault: why the reset is not proven; empty: it is
        """
        with self._guard:
            content = self._open()
            signals = content.devices.get(address)
            if signals is None or not signals.awaiting_reset:
                return
            if fault:
                reason = f'Its reset has failed: {fault}'
                self.report(NewEvent(HostEventKind.QUARANTINE, address, reason=reason))
                return
            for name in signals.awaiting_reset:
                signals.resets[name] = self._clock()
                if name in self._rules.rules:
                    signals.recent.pop(self._rules.rules[name].signal, None)
            signals.awaiting_reset.clear()
            self._finish(content, [address], changed=True)

    def amend(self, result: DiscoveryResult) -> DiscoveryResult:
        """Add the health that the rules require to a discovery result."""
        device = result.device
        if device is None:
            return result
        with self._guard:
            content = self._open()
            if result.address not in content.devices:
                return result
            self._finish(content, [result.address], changed=False)
            rules = self._list_reached(content.devices[result.address])
            worst = max(rules, key=lambda rule: _RANKS.index(rule.health), default=None)
            if worst is None or _RANKS.index(worst.health) <= _RANKS.index(
                device.health
            ):
                return result
            reason = _describe(worst, content.devices[result.address])
        unhealthy = replace(device, health=worst.health, health_reason=reason)
        return replace(result, device=unhealthy)

    def _open(self) -> _Content:
        """Return the content. A reboot of the host clears it."""
        content, boot_id = self._content or self._file.read(), self._host.boot_id
        if content is None or boot_id not in ('', content.boot_id):
            content = _Content(boot_id)
        self._content = content
        return content

    def _log_unreadable(self, error: str) -> None:
        if error and error != self._log_error:
            LOG.warning(
                'The kernel log cannot be read, its lines do not count: %s', error
            )
        self._log_error = error

    # --- signals ---

    def _count(self, signals: _Signals, counters: Mapping[str, int]) -> bool:
        """Add what has changed since the last reading; return True if anything has."""
        changed = False
        for name in counters.keys() & self._windows.keys():
            count = counters[name]
            before = signals.counters.get(name)
            if before == count:
                continue
            changed = True
            rise = count if before is None or count < before else count - before
            # Nobody knows over which time the errors before the first read occurred.
            if rise and (before is not None or name in self._single):
                self._add(signals, name, self._clock(), rise)
            signals.counters[name] = count
            signals.peaks[name] = max(count, signals.peaks.get(name, 0))
        return changed

    def _count_line(self, content: _Content, line: LogLine) -> str:
        """Count a line of the kernel log; return the address of its device, or ''."""
        content.log_number, seconds, text = line
        for pattern in self._rules.lines.values():
            match = pattern.match(text)
            if match is None:
                continue
            # NVIDIA names the card without its function.
            address = pci_address(match[0]) or pci_address(f'{match[0]}.0')
            if address is None:
                continue
            signals = content.devices.setdefault(address, _Signals())
            signals.counters[match[1]] = signals.counters.get(match[1], 0) + 1
            self._add(signals, match[1], seconds, 1)
            return address
        return ''

    def _add(self, signals: _Signals, name: str, moment: float, rise: int) -> None:
        """Add an increase of a signal.

        A quarantine is requested again after each further increase: an operator may
        have ended the last one.
        """
        recent = signals.recent.setdefault(name, [])
        recent.append((moment, rise))
        if len(recent) > _MAX_RECENT:
            # The joined increase counts for longer than the first part of it.
            recent[:2] = [(recent[1][0], recent[0][1] + recent[1][1])]
        for rule in self._rules.rules.values():
            if rule.signal == name and rule.action is Action.QUARANTINE:
                signals.since.pop(rule.name, None)

    # --- rules ---

    def _finish(
        self, content: _Content, addresses: Iterable[str], *, changed: bool
    ) -> None:
        """Update the rules of devices, report the new ones, and write the state."""
        acknowledged_addresses = self._take_acknowledged(content)
        has_news = False
        for address in {*addresses, *acknowledged_addresses} & content.devices.keys():
            signals = content.devices[address]
            new_rules = self._update(signals)
            for rule in new_rules or ():
                reason, kind = _describe(rule, signals), _EVENTS.get(rule.action)
                LOG.warning('Device %s, action %s: %s', address, rule.action, reason)
                last = signals.resets.get(rule.name)
                if last is not None and self._clock() - last < _RESET_HELPS:
                    kind, reason = HostEventKind.QUARANTINE, f'{reason} {_AGAIN}'
                if kind is not None:
                    self.report(NewEvent(kind, address, reason=reason))
            has_news |= new_rules is not None
        if changed or acknowledged_addresses or has_news:
            self._file.write(content)
        if has_news:
            self.on_change()

    def _update(self, signals: _Signals) -> Sequence[HealthRule] | None:
        """Record since when each rule holds.

        :returns: the rules that hold from now on; None: no rule has begun or ended
        """
        for name, entries in signals.recent.items():
            start = self._clock() - self._windows.get(name, 0)
            signals.recent[name] = [entry for entry in entries if entry[0] > start]
        reached = {rule.name: rule for rule in self._list_reached(signals)}
        new_rules = [r for name, r in reached.items() if name not in signals.since]
        former_names = signals.since.keys() - reached.keys()
        for name in former_names:
            del signals.since[name]
        for rule in new_rules:
            signals.since[rule.name] = self._date(rule, signals)
            if rule.action is Action.RESET and rule.name not in signals.awaiting_reset:
                signals.awaiting_reset.append(rule.name)
        return new_rules if new_rules or former_names else None

    def _list_reached(self, signals: _Signals) -> list[HealthRule]:
        """Return the rules that hold now."""
        return [
            rule
            for rule in self._rules.rules.values()
            if self._measure(rule, signals) >= rule.threshold
            or rule.name in signals.awaiting_reset
        ]

    def _measure(self, rule: HealthRule, signals: _Signals) -> int:
        """Return the number that a rule compares with its threshold."""
        value = signals.counters.get(rule.signal, 0)
        if rule.comparison is Comparison.VALUE:
            return value
        if rule.comparison is Comparison.DROP:
            return signals.peaks.get(rule.signal, 0) - value
        return sum(rise for _, rise in self._list_recent(rule, signals))

    def _list_recent(
        self, rule: HealthRule, signals: _Signals
    ) -> Iterator[tuple[float, int]]:
        start = self._clock() - rule.window
        for entry in signals.recent.get(rule.signal, ()):
            if entry[0] > start:
                yield entry

    def _date(self, rule: HealthRule, signals: _Signals) -> str:
        """Return the time since which a rule holds, as text."""
        moments = [moment for moment, _ in self._list_recent(rule, signals)]
        is_rise = rule.comparison is Comparison.RISE and moments
        age = timedelta(seconds=self._clock() - moments[0] if is_rise else 0)
        return f'{datetime.now(UTC) - age:%Y-%m-%d %H:%M:%S} UTC'

    def _take_acknowledged(self, content: _Content) -> list[str]:
        """Clear the devices that the operator has acknowledged, and remove the notes.

        :returns: the addresses of these devices
        """
        addresses: list[str] = []
        try:
            for note in sorted(self._directory.iterdir()):
                note.unlink()
                addresses.append(note.name)
        except FileNotFoundError:
            return []  # no device was ever acknowledged
        except OSError as error:
            LOG.error('Cannot read the acknowledged devices: %s', error)
        for address in addresses:
            LOG.info('The errors of %s are acknowledged', address)
            if address in content.devices:
                content.devices[address].recent.clear()
                content.devices[address].awaiting_reset.clear()
        return addresses


def acknowledge(state_path: Path, address: str) -> None:
    """Leave a note for the agent that the operator accepts the errors of a device.

    :raises OSError: the directory cannot be written
    """
    directory = state_path / _DIRECTORY
    directory.mkdir(mode=0o700, exist_ok=True)
    (directory / address).touch()


def list_reached(state_path: Path, rules: HealthRules) -> dict[str, list[str]]:
    """Return what the rules say about the devices of an agent, by address."""
    file = StateFile(state_path / _FILE, _Content, read_only=True)
    content = file.read() or _Content()
    return {
        address: [
            _describe(rules.rules[name], signals)
            for name in signals.since
            if name in rules.rules
        ]
        for address, signals in content.devices.items()
        if signals.since
    }


def _list_windows(rules: HealthRules) -> Mapping[str, int]:
    """Return the longest window of each signal that a rule names."""
    windows: dict[str, int] = {}
    for rule in rules.rules.values():
        windows[rule.signal] = max(rule.window, windows.get(rule.signal, 0))
    return windows


def _describe(rule: HealthRule, signals: _Signals) -> str:
    """Return what a rule says about a device."""
    count = signals.counters.get(rule.signal, 0)
    since = signals.since.get(rule.name, 'now')
    return f'{rule.text} (rule {rule.name}: {rule.signal} {count}, since {since})'
