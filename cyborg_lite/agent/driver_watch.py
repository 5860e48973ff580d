# SPDX-License-Identifier: Apache-2.0
"""One driver as the agent watches it: what it last said, and what is the matter."""

import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from oslo_log import log

from cyborg_lite.agent.driver_answer import Bounds, understood
from cyborg_lite.drivers.base import Driver, Remembering
from cyborg_lite.model.inventory import Device, Finding, Health

LOG = log.getLogger(__name__)

_NOT_YET: Final = 'it has not answered yet'
_HANGS: Final = 'it does not return'


class DriverWatch:
    """One driver, and the thread on which it looks."""

    def __init__(
        self, name: str, driver: Driver, removal_scans: int, hostname: str
    ) -> None:
        self.name = name
        self.findings: tuple[Finding, ...] = ()
        self.trouble = _NOT_YET
        self.misses: Mapping[str, _Miss] = {}  # by address
        self._driver = driver
        self._removal_scans = removal_scans
        self._bounds = Bounds(hostname, name)
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()
        self._learned: dict[str, Device] = {}  # since the last look began, by address

    def recall(self, finding: Finding) -> None:
        """Of an earlier process; before the first look."""
        self.findings = (*self.findings, finding)
        if isinstance(self._driver, Remembering) and finding.device is not None:
            self._driver.remember(finding.device)

    def learn(self, device: Device) -> None:
        """It was changed by our doing: no look that began before counts for it."""
        with self._guard:
            self._learned[device.address] = device
            self.findings = self._with_learned(self.findings)

    def _with_learned(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        return tuple(
            replace(each, device=self._learned.get(each.address, each.device))
            if each.device
            else each
            for each in findings
        )

    def begin(self, theirs: Collection[str] = ()) -> None:
        """Start a look, unless the last one is still under way.

        :param theirs: what the devices of other drivers claim
        """
        if self._thread is None or not self._thread.is_alive():
            self._bounds = replace(self._bounds, theirs=theirs)
            # A daemon, because a read from a dying device may never return.
            self._thread = threading.Thread(
                target=self._look, name=f'discover-{self.name}', daemon=True
            )
            self._thread.start()

    def finish(self, deadline: float) -> None:
        """Wait for its end, at most until then."""
        if self._thread is None:
            return
        # One that is known to hang is not waited for a second time.
        hangs = self.trouble == _HANGS
        self._thread.join(0.0 if hangs else max(0.0, deadline - time.monotonic()))
        if self._thread.is_alive() and not hangs:
            self.trouble = _HANGS
            LOG.error('Driver %s does not return; the others go on.', self.name)

    @property
    def devices(self) -> tuple[Finding, ...]:
        """All that count as there, as they were when they were last seen."""
        seen = (finding for finding in self.findings if finding.device)
        return (*seen, *(miss.last for miss in self.misses.values()))

    def shown(self) -> tuple[Finding, ...]:
        """What it said, and the devices that it does not see for the moment."""
        misses = self.misses
        here = [each for each in self.findings if each.address not in misses]
        shown = (*here, *(miss.shown() for miss in misses.values()))
        if not self.trouble:
            return shown
        stale = f'Driver {self.name} does not answer; this is what it said last.'
        return tuple(_degraded(finding, stale) for finding in shown)

    def _look(self) -> None:
        with self._guard:
            self._learned.clear()
        try:
            findings = understood(self._driver.discover(), self._bounds)
        except (Exception, SystemExit) as error:
            # Whatever a driver does wrong must not end the report of the others. One
            # that exits would end this thread without a word.
            trouble = f'{type(error).__name__}: {error}'
            if trouble != self.trouble:
                LOG.exception('Driver %s failed.', self.name)
            self.trouble = trouble
            return
        if self.trouble not in ('', _NOT_YET):
            LOG.info('Driver %s answers again.', self.name)
        with self._guard:
            findings = self._with_learned(findings)
            misses = self._missed(findings)
            self.misses, self.findings, self.trouble = misses, findings, ''

    def _missed(self, findings: Sequence[Finding]) -> dict[str, '_Miss']:
        """Devices that were there, and are not among these."""
        verdicts = {finding.address: finding for finding in findings}
        missed = {}
        for last in self.devices:
            verdict = verdicts.get(last.address)
            if verdict is not None and verdict.device is not None:
                continue
            before = self.misses.get(last.address)
            looks = before.looks + 1 if before else 1
            if looks < self._removal_scans:
                missed[last.address] = _Miss(last, looks, verdict)
            else:
                LOG.warning('%s is gone.', last.address)
        return missed


@dataclass(frozen=True, slots=True)
class _Miss:
    """A device that was not there at the last looks."""

    last: Finding
    looks: int
    verdict: Finding | None  # None: nothing at all was seen of it

    def shown(self) -> Finding:
        """Nobody may be given it; whoever has it keeps it."""
        device = self.last.device
        if device is None:
            return self.last
        reason = self.verdict.reason if self.verdict else 'it was not seen any more'
        gone = replace(device, health=Health.GONE, health_reason=reason)
        return replace(self.last, reason=reason, device=gone)


def _degraded(finding: Finding, reason: str) -> Finding:
    device = finding.device
    if device is None or device.health is not Health.OK:
        return finding
    stale = replace(device, health=Health.DEGRADED, health_reason=reason)
    return replace(finding, device=stale)
