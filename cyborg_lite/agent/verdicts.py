# SPDX-License-Identifier: Apache-2.0
"""Every function of a host that might be an accelerator, and what becomes of it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cyborg_lite.drivers.sysfs import Host, PciFunction
from cyborg_lite.model.inventory import Deployable, Finding

# Display, processing accelerator, co-processor: PCI Code and ID Assignment.
_CANDIDATES: Final = ('03', '12', '0b40')


@dataclass(frozen=True, slots=True)
class Verdict:
    finding: Finding
    driver: str | None = None  # None: no enabled driver claims it
    provider: Deployable | None = None  # None: it is not offered

    def as_json(self) -> dict[str, Any]:  # Any: values of JSON are of many types
        provider = self.provider
        return {
            'address': self.finding.address,
            'ids': self.finding.ids,
            'class': self.finding.pci_class,
            'driver': self.driver,
            'offered': provider is not None,
            'reason': self.finding.reason,
            'provider': provider
            and {
                'name': provider.name,
                'resource_class': provider.resource_class,
                'total': provider.total,
                'reserved': provider.withheld,
                'traits': list(provider.traits),
            },
            'handles': [
                {'type': unit.type.value, 'info': dict(unit.info)}
                for unit in (provider.units if provider else ())
            ],
        }


def verdicts(
    host: Host, findings: Iterable[Finding], silent: Mapping[str, str]
) -> list[Verdict]:
    """What the drivers judged, and the candidates that none of them did; by address.

    ``silent`` are drivers that did not answer: what they would claim is not known.
    """
    judged = [verdict for finding in findings for verdict in _judged(finding)]
    known = {verdict.finding.address for verdict in judged}
    unclaimed = [
        Verdict(finding)
        for finding in _unclaimed(host, silent)
        if finding.address not in known
    ]
    return sorted(judged + unclaimed, key=lambda verdict: verdict.finding.address)


def _judged(finding: Finding) -> Iterator[Verdict]:
    """One verdict for each provider that has something to give, else a single one."""
    parts = finding.device.root.walk() if finding.device else ()
    offered = [
        part for part in parts if part.resource_class and part.total > part.withheld
    ]
    for provider in offered or (None,):
        yield Verdict(finding, finding.driver, provider)


def _unclaimed(host: Host, silent: Mapping[str, str]) -> Iterator[Finding]:
    nobody = 'no enabled driver claims it'
    if silent:
        nobody = f'no driver claims it, but {" and ".join(silent)} did not answer'
    for function in host.pci_functions():
        reason = f'boot VGA of the host; {nobody}' if function.boot_vga else nobody
        if not function.vendor or not function.pci_class:
            reason = 'its ids cannot be read'
        elif not function.pci_class.startswith(_CANDIDATES):
            continue
        elif function.physfn:
            reason = f'virtual function of {function.physfn}; {nobody}'
        yield _finding(function, reason)


def _finding(function: PciFunction, reason: str) -> Finding:
    return Finding(function.address, function.ids, function.pci_class, '', reason)
