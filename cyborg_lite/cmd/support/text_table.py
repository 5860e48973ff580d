# SPDX-License-Identifier: Apache-2.0
"""Text tables for a terminal, a file or a pipe."""

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

_GAP: Final = '  '
_NARROWEST: Final = 6  # characters; below this width a column is not wrapped

# Any: a record of any class.
Columns = Mapping[str, str | Callable[[Any], object]]
"""The attribute or the function of a record, by heading."""


def format_records(records: Iterable[Any], columns: Columns, empty: str = '') -> str:
    """Return a table with a row for each record; a cell without a value is ``-``.

    :param empty: as of ``format_table``
    """
    rows = [
        [_read_cell(record, source) for source in columns.values()]
        for record in records
    ]
    return format_table([list(columns), *rows], empty)


def _read_cell(record: Any, source: str | Callable[[Any], object]) -> object:
    value = getattr(record, source) if isinstance(source, str) else source(record)
    return '-' if value in (None, '') else value


def format_table(
    rows: Sequence[Sequence[object]], empty: str = '', width: int | None = None
) -> str:
    """Return the rows with aligned columns, without trailing spaces.

    Cells of wide columns continue on further lines if the table is too wide.

    :param rows: headings first
    :param empty: text in place of a table without rows; empty: print the headings
    :param width: longest line in characters; None: that of the terminal, or no limit if
        standard output is not a terminal
    """
    if empty and len(rows) == 1:
        return empty
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    if width is None and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
    if width is not None:
        widths = _narrow(widths, width)
    return '\n'.join(line for row in texts for line in _format_row(row, widths))


def _narrow(widths: Sequence[int], limit: int) -> list[int]:
    """Return widths whose sum fits, by taking from the widest columns first."""
    result = list(widths)
    excess = sum(result) + len(_GAP) * (len(result) - 1) - limit
    while excess > 0 and max(result) > _NARROWEST:
        result[result.index(max(result))] -= 1
        excess -= 1
    return result


def _format_row(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    cells = [
        textwrap.wrap(text, width, break_on_hyphens=False)
        if len(text) > width
        else [text]
        for text, width in zip(row, widths, strict=True)
    ]
    for line in zip_longest(*cells, fillvalue=''):
        padded = (f'{text:<{width}}' for text, width in zip(line, widths, strict=True))
        yield _GAP.join(padded).rstrip()
