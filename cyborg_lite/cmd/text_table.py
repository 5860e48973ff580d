# SPDX-License-Identifier: Apache-2.0
"""Text tables for a terminal."""

from collections.abc import Sequence


def format_table(rows: Sequence[Sequence[object]]) -> str:
    """Return the rows with aligned columns, without trailing spaces."""
    columns = zip(*rows, strict=True)
    widths = [max(len(str(cell)) for cell in column) for column in columns]
    lines = (
        '  '.join(f'{cell!s:<{width}}' for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return '\n'.join(line.rstrip() for line in lines)
