# SPDX-License-Identifier: Apache-2.0
"""Runs the drivers apart from one another and puts together what they find.

A driver that fails or hangs costs its own devices their freshness: what it last said
stands, with a word about it, until it answers again. A device goes only after several
clean looks without it, because one that is missing from a report is taken for removed.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from cyborg_lite.agent.driver_answer import claims
from cyborg_lite.agent.driver_watch import DriverWatch
from cyborg_lite.drivers.base import Driver, Recalling
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.model.devices import HeldHandle
from cyborg_lite.model.inventory import Device, Finding, HostReport


class Discovery:
    """All enabled drivers of one host."""

    def __init__(
        self,
        host: Host,
        drivers: Mapping[str, Driver],
        driver_timeout: float,
        amend: Callable[[Finding], Finding] = lambda finding: finding,
        removal_scans: int = 3,
    ) -> None:
        """:param driver_timeout: seconds, for all drivers at once
        :param amend: with what is known of a device beside what it shows
        :param removal_scans: clean looks without a device until it is gone
        """
        self.host = host
        self._amend = amend
        self._drivers = drivers
        self._watches = [
            DriverWatch(name, driver, removal_scans, host.name)
            for name, driver in drivers.items()
        ]
        self._driver_timeout = driver_timeout
        self._findings: tuple[Finding, ...] = ()

    def recall(self, findings: Iterable[Finding]) -> None:
        """What an earlier process of the agent found last; before the first look."""
        for finding in findings:
            for watch in self._watches:
                if watch.name == finding.driver:
                    watch.recall(finding)

    def own(self, handles: Iterable[HeldHandle]) -> None:
        """Whose the things are that the drivers see; before the first look."""
        known = list(handles)
        for driver in self._drivers.values():
            if isinstance(driver, Recalling):
                driver.recall(known)

    def look(self) -> tuple[Finding, ...]:
        """The verdict on each function, by address; one at a time may look."""
        owners = self._owners()
        for watch in self._watches:
            watch.begin({what for what, name in owners.items() if name != watch.name})
        deadline = time.monotonic() + self._driver_timeout
        for watch in self._watches:
            watch.finish(deadline)
        return self._put_together()

    def learn(self, device: Device) -> None:
        """What a device is now that was changed by our doing.

        Else what was true before would be reported until the next look.
        """
        for watch in self._watches:
            watch.learn(device)
        self._put_together()

    def _put_together(self) -> tuple[Finding, ...]:
        found = [finding for watch in self._watches for finding in watch.shown()]
        self._findings = tuple(map(self._amend, settled(found)))
        return self._findings

    def _owners(self) -> Mapping[str, str]:
        """Whose each claim was at the last look: who comes later costs nobody his."""
        return {
            claim: finding.driver
            for finding in self._findings
            if finding.device is not None
            for claim in claims(finding.device)
        }

    def report(self) -> HostReport:
        """What the last look found, for the conductor."""
        devices = tuple(each.device for each in self._findings if each.device)
        return HostReport(self.host.name, self.host.boot_id, devices)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The verdicts of the last look."""
        return self._findings

    @property
    def silent(self) -> Mapping[str, str]:
        """Drivers that did not answer the last look, and what is the matter."""
        return {each.name: each.trouble for each in self._watches if each.trouble}

    @property
    def unsettled(self) -> bool:
        """Whether a device is missing that counts as there for a few more looks."""
        return any(watch.misses for watch in self._watches)

    def reported(self) -> tuple[Finding, ...]:
        """What the drivers last said of devices, to be recalled by a later process."""
        said = (finding for watch in self._watches for finding in watch.devices)
        return tuple(sorted(said, key=lambda finding: finding.address))

    def quarrels(self) -> tuple[str, ...]:
        """Functions that more than one driver offers, each with the drivers' names."""
        offers = [
            finding
            for watch in self._watches
            for finding in watch.findings
            if finding.device
        ]
        rivals = _rivals(offers)
        told = ((each.address, _quarrel(each, rivals)) for each in offers)
        return tuple(
            dict.fromkeys(f'{where} is {what}' for where, what in told if what)
        )

    def driver_of(self, address: str) -> Driver | None:
        """Which one manages the function; None: none of them knows it."""
        for finding in self._findings:
            if finding.address == address:
                return self._drivers.get(finding.driver)
        return None


def settled(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding of each function, unless drivers quarrel over it; by address.

    Where one offers the function, what others say of it does not count. Where several
    do, none may: each would hand it out without the others knowing.
    """
    found = sorted(findings, key=lambda finding: finding.address)
    rivals = _rivals(found)
    result: list[Finding] = []
    for _, verdicts in groupby(found, key=lambda finding: finding.address):
        those = list(verdicts)
        offers = [finding for finding in those if finding.device]
        result += [_withheld(each, rivals) for each in offers] or those[:1]
    return tuple(result)


def _rivals(findings: Iterable[Finding]) -> Mapping[str, Sequence[str]]:
    """By what devices claim: the drivers that offer it."""
    rivals: dict[str, list[str]] = {}
    for finding in findings:
        for claim in claims(finding.device) if finding.device else ():
            rivals.setdefault(claim, []).append(finding.driver)
    return rivals


def _withheld(finding: Finding, rivals: Mapping[str, Sequence[str]]) -> Finding:
    quarrel = _quarrel(finding, rivals)
    return replace(finding, reason=quarrel, device=None) if quarrel else finding


def _quarrel(finding: Finding, rivals: Mapping[str, Sequence[str]]) -> str:
    """Why it cannot be offered; empty: nobody else offers any of it."""
    of_device = claims(finding.device) if finding.device else ()
    names = sorted({name for claim in of_device for name in rivals[claim]})
    if len(names) < 2:
        return ''
    return f'claimed by {" and ".join(names)}: enable only one of them'
