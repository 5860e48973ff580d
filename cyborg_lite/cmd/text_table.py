# SPDX-License-Identifier: Apache-2.0
"""Rows of cells as text for a terminal."""

from collections.abc import Sequence


def table(rows: Sequence[Sequence[object]]) -> str:
    """Columns as wide as their widest cell; the last is followed by nothing."""
    columns = zip(*rows, strict=True)
    widths = [max(len(str(cell)) for cell in column) for column in columns]
    lines = (
        '  '.join(f'{cell!s:<{width}}' for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return '\n'.join(line.rstrip() for line in lines)
