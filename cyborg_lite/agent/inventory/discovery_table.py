# SPDX-License-Identifier: Apache-2.0
"""Formats discovery rows as a table for a terminal."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cyborg_lite.agent.inventory.discovery_report import DiscoveryRow

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
        lines += _details(_list_details(row), ' ' * indent, width)
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


def _details(
    details: Iterable[tuple[str, str]], indent: str, width: int
) -> Iterator[str]:
    for label, text in details:
        start = f'{indent}{label:<10}'
        yield from _wrap(start, ' ' * len(start), text, width)


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
