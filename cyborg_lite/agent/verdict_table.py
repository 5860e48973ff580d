# SPDX-License-Identifier: Apache-2.0
"""Verdicts as a table that a person reads on a terminal."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from cyborg_lite.agent.verdicts import Verdict
from cyborg_lite.model.inventory import Deployable

_HEADINGS: Final = ('ADDRESS', 'IDS', 'CLASS', 'DRIVER', 'OFFERED', 'REASON')
_GAP: Final = '  '


def table(verdicts: Sequence[Verdict], width: int = 120) -> str:
    """Lines of at most ``width`` characters, the last one the sum."""
    if not verdicts:
        return 'No candidate function on this host.'
    rows = [_HEADINGS, *(_cells(verdict) for verdict in verdicts)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    indent = sum(widths) + len(_GAP) * len(widths)
    lines = list(_row(rows[0], widths, width))
    for verdict, row in zip(verdicts, rows[1:], strict=True):
        lines += _row(row, widths, width)
        if verdict.provider is not None:
            lines += _details(verdict.provider, ' ' * indent, width)
    offered = sum(verdict.provider is not None for verdict in verdicts)
    return '\n'.join([*lines, '', f'{offered} of {len(verdicts)} offered.'])


def _cells(verdict: Verdict) -> tuple[str, ...]:
    finding = verdict.finding
    return (
        finding.address,
        finding.ids,
        finding.pci_class or '-',
        verdict.driver or '-',
        'yes' if verdict.provider else 'no',
        finding.reason,
    )


def _row(cells: Sequence[str], widths: Sequence[int], width: int) -> Iterator[str]:
    fixed = zip(cells, widths, strict=False)  # the last cell takes what is left
    start = ''.join(f'{cell:<{size}}{_GAP}' for cell, size in fixed)
    yield from _wrapped(start, ' ' * len(start), cells[-1], width)


def _details(provider: Deployable, indent: str, width: int) -> Iterator[str]:
    amount = f'{provider.resource_class} {provider.total}'
    if provider.withheld:
        amount += f', {provider.withheld} of them reserved'
    handles = (f'{unit.type.value} {unit.key}' for unit in provider.units)
    for name, text in (
        ('provider', f'{provider.name}: {amount}'),
        ('traits', ', '.join(provider.traits)),
        ('handles', _listed(handles)),
    ):
        start = f'{indent}{name:<10}'
        yield from _wrapped(start, ' ' * len(start), text, width)


def _listed(handles: Iterable[str]) -> str:
    """``PCI a, b``: the type once, where all have the same."""
    pairs = [handle.split(' ', 1) for handle in handles]
    kinds = {kind for kind, _ in pairs}
    if len(kinds) == 1:
        return f'{kinds.pop()} {", ".join(key for _, key in pairs)}'
    return ', '.join(' '.join(pair) for pair in pairs)


def _wrapped(start: str, indent: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=start,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
