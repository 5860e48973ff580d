# SPDX-License-Identifier: Apache-2.0
"""Health rules: which signal of a device has which effect.

A signal is a whole number with a name: an error counter, a state that is 0 or 1, or the
number of lines of the kernel log that match a pattern.
"""

import enum
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from cyborg_lite.model.inventory.host_report import Health


class Action(enum.StrEnum):
    """Effects of a rule, from the least to the most severe one."""

    NOTE = 'note'
    """The history of the device gets an entry."""
    DEGRADE = 'degrade'
    """The health of the device is degraded. It is still offered."""
    WITHHOLD = 'withhold'
    """No new instance gets the device until the rule does not hold any more."""
    RESET = 'reset-and-retest'
    """No new instance gets the device until a reset of it is proven.

    A reset that fails or does not help is a quarantine.
    """
    QUARANTINE = 'quarantine'
    """No new instance gets the device until an operator ends the quarantine."""


class HardwareState(enum.StrEnum):
    """Severities: what a rule says about the hardware."""

    INFO = 'info'
    WARNING = 'warning'
    ERROR = 'error'
    FATAL = 'fatal'
    """No instance can use the device, not even the one that has it."""


class Comparison(enum.StrEnum):
    """Numbers that a rule can compare with its threshold."""

    RISE = 'rise'
    """The increase of the signal within the window."""
    VALUE = 'value'
    """The last reading of the signal."""
    DROP = 'drop'
    """The difference to the largest reading since the boot of the host."""


@dataclass(frozen=True, slots=True)
class HealthRule:
    """A rule. It holds while the compared number is at least the threshold."""

    signal: str
    action: Action
    severity: HardwareState
    text: str  # what it means, for the operator
    source: str  # who says so
    comparison: Comparison = Comparison.RISE
    threshold: int = 1
    window: int = 3600  # seconds; of RISE only
    name: str = ''  # its key in the file

    @property
    def health(self) -> Health:
        """The health of a device while the rule holds.

        A quarantine is no health: the conductor stores it.
        """
        if self.action is Action.WITHHOLD:
            is_fatal = self.severity is HardwareState.FATAL
            return Health.FAILED if is_fatal else Health.WITHHELD
        if self.action is Action.RESET:
            return Health.WITHHELD
        return Health.DEGRADED if self.action is Action.DEGRADE else Health.OK

    def list_faults(self) -> Iterator[str]:
        """Yield what is wrong with the rule."""
        if self.threshold < 1:
            yield 'threshold must be at least 1'
        if not MIN_WINDOW <= self.window <= MAX_WINDOW:
            yield f'window must be {MIN_WINDOW} to {MAX_WINDOW} s'
        if not SIGNAL_NAME.fullmatch(self.signal):
            yield f'{self.signal!r} is no name of a signal'
        # The next reading of a state may be older than the reset.
        if self.action is Action.RESET and self.comparison is not Comparison.RISE:
            yield f'{self.action} needs the comparison rise'
        if not self.text or not self.source:
            yield 'text and source must not be empty'


@dataclass(frozen=True, slots=True)
class LinePattern:
    """Lines of the kernel log that count as a signal of a device."""

    pattern: str  # regular expression with the group ``address``
    signal: str  # may name other groups in braces

    def match(self, text: str) -> tuple[str, str] | None:
        """Return the address in a line, as written, and the signal; None: no match."""
        match = re.search(self.pattern, text)
        if match is None:
            return None
        groups = match.groupdict()
        return groups['address'], self.signal.format(**groups)


@dataclass(frozen=True, slots=True)
class HealthRules:
    """The rules of a host, and the patterns of its kernel log, by name."""

    rules: Mapping[str, HealthRule]
    lines: Mapping[str, LinePattern]

    def list_faults(self) -> Iterator[str]:
        """Yield what is wrong with the rules, one sentence each."""
        for name, rule in self.rules.items():
            yield from (f'Rule {name}: {fault}.' for fault in rule.list_faults())
        for name, line in self.lines.items():
            fault = _find_pattern_fault(line)
            if fault:
                yield f'Lines {name}: {fault}.'


MIN_WINDOW: Final = 60  # seconds
MAX_WINDOW: Final = 366 * 24 * 3600
SIGNAL_NAME: Final = re.compile(r'[a-z0-9_]{1,64}')


def _find_pattern_fault(line: LinePattern) -> str:
    try:
        groups = re.compile(line.pattern).groupindex
    except re.error as error:
        return f'the pattern is no regular expression: {error}'
    if 'address' not in groups:
        return 'the pattern has no group "address"'
    try:
        line.signal.format(**dict.fromkeys(groups, '0'))
    except (KeyError, IndexError, ValueError):
        return 'the signal names a group that the pattern does not have'
    return ''
