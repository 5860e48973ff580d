# SPDX-License-Identifier: Apache-2.0
"""Lists all PCI functions that a driver could offer, with the reason of each result."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cyborg_lite.drivers.base import Driver, RecognizesFunctions
from cyborg_lite.drivers.host.sysfs import Host, PciFunction
from cyborg_lite.drivers.host.timed_scan import TimedScan
from cyborg_lite.drivers.pci.generic import GenericPci
from cyborg_lite.model.devices.health_rules import HealthRule
from cyborg_lite.model.inventory.host_report import Deployable, DiscoveryResult, Health

# Display, processing accelerator, co-processor, unassigned: PCI Code and ID Assignment.
_UNASSIGNED: Final = 'ff'
_HUNG: Final = 'it does not answer: a read from its files has not returned'
_CANDIDATE_CLASSES: Final = ('03', '12', '0b40', _UNASSIGNED)


@dataclass(frozen=True, slots=True)
class DiscoveryRow:
    """A PCI function, or a provider of a PCI function with several providers."""

    result: DiscoveryResult
    driver: str | None = None  # None: no enabled driver claims it
    provider: Deployable | None = None  # None: the function is not offered
    suggestions: tuple[str, ...] = ()  # drivers that could offer it if configured
    name: str | None = None  # of vendor and device; None: not in pci.ids
    probes: Mapping[str, int | None] | None = None  # last readings, by signal
    rules: Sequence[HealthRule] = ()  # that compare the readings

    def as_json(self) -> dict[str, Any]:  # Any: values of JSON are of many types
        """Return the row as a JSON object."""
        provider = self.provider
        probes = {} if self.probes is None else {'probes': dict(self.probes)}
        rules = {'rules': [rule.name for rule in self.rules]} if probes else {}
        return {
            **probes,
            **rules,
            'address': self.result.address,
            'ids': self.result.ids,
            'name': self.name,
            'class': self.result.pci_class,
            'driver': self.driver,
            'suggested_drivers': list(self.suggestions),
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
    disabled_drivers: Mapping[str, Driver] | None = None,
    scan: TimedScan | None = None,
) -> list[DiscoveryRow]:
    """Return the results of the drivers and the unclaimed candidates, by address.

    :param unavailable_drivers: drivers whose scan did not complete; their claims are
        unknown
    :param disabled_drivers: installed drivers to suggest, by name
    """
    claimed = [row for result in results for row in _rows_of_result(result)]
    addresses = {row.result.address for row in claimed}
    functions = [item for item in host.pci_functions() if item.address not in addresses]
    unclaimed = 'no enabled driver claims it'
    if unavailable_drivers:
        names = ' and '.join(unavailable_drivers)
        unclaimed = f'no driver claims it, but {names} did not answer'

    def build(function: PciFunction) -> DiscoveryRow | None:
        return _build_unclaimed(function, unclaimed, disabled_drivers or {})

    unclaimed_rows = [
        DiscoveryRow(DiscoveryResult(reading.function.address, '', '', '', _HUNG))
        if reading.is_hung
        else reading.value
        for reading in (scan or TimedScan()).read(functions, build)
    ]
    claimed += [row for row in unclaimed_rows if row is not None]
    return sorted(claimed, key=lambda row: row.result.address)


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


def _build_unclaimed(
    function: PciFunction, unclaimed: str, disabled_drivers: Mapping[str, Driver]
) -> DiscoveryRow | None:
    """Return the row of a function, or None if no installed driver supports it."""
    if not function.vendor or not function.pci_class:
        return DiscoveryRow(_to_result(function, 'its ids cannot be read'))
    suggestions = tuple(
        name
        for name, driver in disabled_drivers.items()
        if isinstance(driver, RecognizesFunctions) and driver.recognizes(function)
    )
    if not suggestions and not function.pci_class.startswith(_CANDIDATE_CLASSES):
        return None
    reason = unclaimed
    if suggestions:
        names = ' and '.join(suggestions)
        reason = f'{unclaimed}; [agent] enabled_drivers lacks {names}'
    elif function.pci_class.startswith(_UNASSIGNED):
        suggestions = (GenericPci.NAME,)
        reason = f'{unclaimed}; {GenericPci.NAME} offers it if device_spec selects it'
    if function.is_boot_vga:
        reason = f'boot VGA of the host; {reason}'
    elif function.physfn:
        reason = f'virtual function of {function.physfn}; {reason}'
    return DiscoveryRow(_to_result(function, reason), suggestions=suggestions)


def _to_result(function: PciFunction, reason: str) -> DiscoveryResult:
    return DiscoveryResult(
        function.address, function.ids, function.pci_class, '', reason
    )


_HEADINGS: Final = ('ADDRESS', 'IDS', 'CLASS', 'DRIVER', 'OFFERED', 'REASON')
_GAP: Final = '  '


def format_table(rows: Sequence[DiscoveryRow], width: int = 120) -> str:
    """Return a table with a line of totals at its end.

    :param width: maximum length of a line in characters
    """
    if not rows:
        return 'No candidate function on this host.'
    table = [_HEADINGS, *(_cells(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)][:-1]
    indent = sum(widths) + len(_GAP) * len(widths)
    lines = list(_format_line(table[0], widths, width))
    for row, cells in zip(rows, table[1:], strict=True):
        lines += _format_line(cells, widths, width)
        for label, text in _list_details(row):
            start = f'{" " * indent}{label:<10}'
            lines += _wrap(start, ' ' * len(start), text, width)
    offered_count = sum(row.provider is not None for row in rows)
    return '\n'.join([*lines, '', f'{offered_count} of {len(rows)} offered.'])


def _cells(row: DiscoveryRow) -> tuple[str, ...]:
    result = row.result
    return (
        result.address,
        result.ids,
        result.pci_class or '-',
        row.driver or '-',
        'yes' if row.provider else 'no',
        result.reason,
    )


def _format_line(
    cells: Sequence[str], widths: Sequence[int], width: int
) -> Iterator[str]:
    fixed = zip(cells, widths, strict=False)  # the last cell has no fixed width
    start = ''.join(f'{cell:<{size}}{_GAP}' for cell, size in fixed)
    yield from _wrap(start, ' ' * len(start), cells[-1], width)


def _list_details(row: DiscoveryRow) -> Iterator[tuple[str, str]]:
    """Yield label and text of the lines below a row."""
    if row.name:
        yield 'name', row.name
    if row.probes is not None:
        readings = (f'{k} {"?" if v is None else v}' for k, v in row.probes.items())
        yield 'probes', ', '.join(readings)
        yield 'rules', ', '.join(f'{rule.name}: {rule.action}' for rule in row.rules)
    provider = row.provider
    if provider is None:
        return
    amount = f'{provider.resource_class} {provider.total}'
    if provider.unavailable:
        amount += f', {provider.unavailable} reserved'
    yield 'provider', f'{provider.name}: {amount}'
    yield 'traits', ', '.join(provider.traits)
    if row.result.device is not None and row.result.device.health_reason:
        yield 'health', row.result.device.health_reason
    handles = (f'{unit.type.value} {unit.key}' for unit in provider.handles)
    yield 'handles', _join_handles(handles)


def _join_handles(handles: Iterable[str]) -> str:
    """Join handles. Write a common type once, as in ``PCI a, b``."""
    pairs = [handle.split(' ', 1) for handle in handles]
    types = {handle_type for handle_type, _ in pairs}
    if len(types) == 1:
        return f'{types.pop()} {", ".join(key for _, key in pairs)}'
    return ', '.join(' '.join(pair) for pair in pairs)


def _wrap(start: str, indent: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=start,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
