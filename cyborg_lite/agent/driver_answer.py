# SPDX-License-Identifier: Apache-2.0
"""What a driver may answer to a look, so that its nonsense costs others nothing.

The conductor refuses a whole report for one wrong value in it.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from cyborg_lite.exceptions import InvalidInput
from cyborg_lite.model import report_rules
from cyborg_lite.model.inventory import Device, Finding, HostReport
from cyborg_lite.rpc import wire


@dataclass(frozen=True, slots=True)
class Bounds:
    """Within which one driver must keep."""

    hostname: str
    driver: str
    theirs: Collection[str] = ()  # what the devices of other drivers claim


def claims(device: Device) -> Iterator[str]:
    """What no two devices of a host may have in common."""
    yield device.address
    for part in device.root.walk():
        yield part.name


def understood(said: Iterable[Finding], bounds: Bounds) -> tuple[Finding, ...]:
    """All that it said, if all of it makes sense.

    :raises CyborgError: the conductor would refuse it, or it concerns other drivers
    :raises Exception: it is something else than findings
    """
    findings = tuple(said)
    for finding in findings:
        _check(finding, bounds)
    if len({finding.address for finding in findings}) < len(findings):
        raise InvalidInput(reason='It judges a function twice.')
    devices = tuple(each.device for each in findings if each.device is not None)
    report_rules.check(HostReport(bounds.hostname, '', devices))
    return findings


def _check(finding: Finding, bounds: Bounds) -> None:
    wire.load(Finding, wire.dump(finding))
    if finding.driver != bounds.driver:
        raise InvalidInput(reason=f'It speaks for driver {finding.driver}.')
    if finding.device is None:
        return
    if finding.device.address != finding.address:
        raise InvalidInput(reason=f'It finds another device at {finding.address}.')
    for claim in claims(finding.device):
        if claim in bounds.theirs:
            raise InvalidInput(reason=f'It claims {claim}, which another driver has.')
