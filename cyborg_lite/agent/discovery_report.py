# SPDX-License-Identifier: Apache-2.0
"""Lists all PCI functions that may be accelerators, with the reason of each result."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.model.inventory import Deployable, DiscoveryResult, Health

# Display, processing accelerator, co-processor: PCI Code and ID Assignment.
_ACCELERATOR_CLASSES: Final = ('03', '12', '0b40')


@dataclass(frozen=True, slots=True)
class DiscoveryRow:
    """A PCI function, or a provider of a PCI function with several providers."""

    result: DiscoveryResult
    driver: str | None = None  # None: no enabled driver claims it
    provider: Deployable | None = None  # None: the function is not offered

    def as_json(self) -> dict[str, Any]:  # Any: values of JSON are of many types
        """Return the row as a JSON object."""
        provider = self.provider
        return {
            'address': self.result.address,
            'ids': self.result.ids,
            'class': self.result.pci_class,
            'driver': self.driver,
            'offered': provider is not None,
            'reason': self.result.reason,
            'provider': provider
            and {
                'name': provider.name,
                'resource_class': provider.resource_class,
                'total': provider.total,
                'reserved': provider.unavailable,
                'traits': list(provider.traits),
            },
            'handles': [
                {'type': unit.type.value, 'info': dict(unit.info)}
                for unit in (provider.handles if provider else ())
            ],
        }


def build_rows(
    host: Host,
    results: Iterable[DiscoveryResult],
    unavailable_drivers: Mapping[str, str],
) -> list[DiscoveryRow]:
    """Return the results of the drivers and the unclaimed candidates, by address.

    :param unavailable_drivers: drivers whose scan did not complete; their claims are
        unknown
    """
    claimed = [row for result in results for row in _rows_of_result(result)]
    addresses = {row.result.address for row in claimed}
    unclaimed = [
        DiscoveryRow(result)
        for result in _list_unclaimed(host, unavailable_drivers)
        if result.address not in addresses
    ]
    return sorted(claimed + unclaimed, key=lambda row: row.result.address)


def _rows_of_result(result: DiscoveryResult) -> Iterator[DiscoveryRow]:
    """Yield one row per provider with free resources, or one row without provider."""
    device = result.device
    if device is not None and device.health is Health.CONFLICT:
        device = None
    deployables = device.root.walk() if device else ()
    providers = [
        deployable
        for deployable in deployables
        if deployable.resource_class and deployable.total > deployable.unavailable
    ]
    for provider in providers or (None,):
        yield DiscoveryRow(result, result.driver, provider)


def _list_unclaimed(
    host: Host, unavailable_drivers: Mapping[str, str]
) -> Iterator[DiscoveryResult]:
    unclaimed = 'no enabled driver claims it'
    if unavailable_drivers:
        names = ' and '.join(unavailable_drivers)
        unclaimed = f'no driver claims it, but {names} did not answer'
    for function in host.pci_functions():
        reason = (
            f'boot VGA of the host; {unclaimed}' if function.is_boot_vga else unclaimed
        )
        if not function.vendor or not function.pci_class:
            reason = 'its ids cannot be read'
        elif not function.pci_class.startswith(_ACCELERATOR_CLASSES):
            continue
        elif function.physfn:
            reason = f'virtual function of {function.physfn}; {unclaimed}'
        yield _to_result(function, reason)


def _to_result(function: PciFunction, reason: str) -> DiscoveryResult:
    return DiscoveryResult(
        function.address, function.ids, function.pci_class, '', reason
    )
