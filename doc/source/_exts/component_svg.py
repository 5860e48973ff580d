# SPDX-License-Identifier: Apache-2.0
"""Draws boxes on a grid, and labelled arrows between them, as SVG."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape, quoteattr

_BOX: Final = re.compile(r'(\w+) \((\d+), (\d+)\): (.+)')
_ARROW: Final = re.compile(r'(\w+) -> (\w+)(?:: (.+))?')
_WIDTH, _HEIGHT = 184, 48  # of a box, in pixels
_COLUMN, _ROW = 280, 104  # distance of two columns, and of two rows
_FIRST_LINE: Final = ' font-weight="bold"'
_LATER_LINE: Final = ''
_LINE: Final = 17  # distance of two lines of text


@dataclass(frozen=True, slots=True)
class Box:
    """A component and the centre of its box."""

    text: str
    x: float
    y: float


def draw_components(lines: Sequence[str], title: str) -> str:
    """Return the SVG picture.

    :raises ValueError: if a line is malformed, or an arrow names an unknown box
    """
    boxes: dict[str, Box] = {}
    arrows: list[str] = []
    for line in filter(None, lines):
        if match := _BOX.fullmatch(line):
            name, column, row, text = match.groups()
            x = int(column) * _COLUMN + _WIDTH / 2 + 10
            y = int(row) * _ROW + _HEIGHT / 2 + 10
            boxes[name] = Box(text, x, y)
        elif match := _ARROW.fullmatch(line):
            start, end, text = match.groups()
            if not {start, end} <= boxes.keys():
                raise ValueError(f'Unknown box in the arrow {line!r}.')
            arrows.append(_draw_arrow(boxes[start], boxes[end], text or ''))
        else:
            raise ValueError(f'Neither a box nor an arrow: {line!r}.')
    width = max((box.x for box in boxes.values()), default=0) + _WIDTH / 2 + 10
    height = max((box.y for box in boxes.values()), default=0) + _HEIGHT / 2 + 10
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" aria-label={quoteattr(title)} '
        'font-family="sans-serif" font-size="13"><defs><marker id="head" '
        'markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
        '<path d="M0,0 L9,4 L0,8 z" fill="#246"/></marker></defs>'
    )
    return '\n'.join([head, *arrows, *map(_draw_box, boxes.values()), '</svg>'])


def _draw_box(box: Box) -> str:
    lines = box.text.split(' | ')
    first = box.y + 5 - (len(lines) - 1) * _LINE / 2
    return (
        f'<rect x="{box.x - _WIDTH / 2:.0f}" y="{box.y - _HEIGHT / 2:.0f}" '
        f'width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="#eef4fb" stroke="#246"/>'
    ) + ''.join(
        f'<text x="{box.x:.0f}" y="{first + number * _LINE:.0f}" text-anchor="middle"'
        f'{_LATER_LINE if number else _FIRST_LINE}>{escape(line)}</text>'
        for number, line in enumerate(lines)
    )


def _draw_arrow(start: Box, end: Box, text: str) -> str:
    x, y = end.x - start.x, end.y - start.y
    # The line ends at the edge of each box.
    scale = min(
        _WIDTH / 2 / abs(x) if x else float('inf'),
        _HEIGHT / 2 / abs(y) if y else float('inf'),
    )
    from_x, from_y = start.x + x * scale, start.y + y * scale
    to_x, to_y = end.x - x * scale, end.y - y * scale
    path = (
        f'<path d="M{from_x:.0f},{from_y:.0f} L{to_x:.0f},{to_y:.0f}" '
        'stroke="#246" marker-end="url(#head)"/>'
    )
    if not text:
        return path
    return (
        f'{path}<text x="{(from_x + to_x) / 2:.0f}" y="{(from_y + to_y) / 2 - 4:.0f}" '
        'text-anchor="middle" stroke="#fff" stroke-width="4" paint-order="stroke">'
        f'{escape(text)}</text>'
    )
