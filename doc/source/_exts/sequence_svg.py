# SPDX-License-Identifier: Apache-2.0
"""Draws messages between participants as an SVG sequence diagram."""

import re
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

_MESSAGE: Final = re.compile(r'(\w+) (-->|->) (\w+): (.+)')
_COLUMN, _ROW = 122, 36  # distance of two participants, and of two messages, in pixels
_WIDTH, _HEIGHT = 104, 32  # of the box of a participant
_HALO: Final = 'stroke="#fff" stroke-width="4" paint-order="stroke"'
_TOP: Final = 75  # of the first message


def draw_sequence(lines: Sequence[str], title: str) -> str:
    """Return the SVG picture.

    :raises ValueError: if a line is malformed
    """
    columns: dict[str, int] = {}
    messages: list[str] = []
    for line in filter(None, lines):
        match = _MESSAGE.fullmatch(line)
        if match is None:
            raise ValueError(f'Not a message: {line!r}.')
        sender, arrow, receiver, text = match.groups()
        for name in (sender, receiver):
            columns.setdefault(name, len(columns) * _COLUMN + _WIDTH // 2 + 10)
        y = _TOP + len(messages) * _ROW
        dashes = ' stroke-dasharray="5 4"' if arrow == '-->' else ''
        ends = columns[sender], columns[receiver]
        messages.append(_draw_message(*ends, y, escape(text), dashes))
    bottom = _TOP + len(messages) * _ROW
    width = max(columns.values(), default=0) + _WIDTH // 2 + 24
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" '
        f'viewBox="0 0 {width} {bottom}" aria-label={quoteattr(title)} '
        'font-family="sans-serif" font-size="13"><defs><marker id="end" '
        'markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">'
        '<path d="M0,0 L9,4 L0,8 z" fill="#246"/></marker></defs>'
    )
    participants = [_draw_participant(name, columns[name], bottom) for name in columns]
    return '\n'.join([head, *participants, *messages, '</svg>'])


def _draw_participant(name: str, x: int, bottom: int) -> str:
    return (
        f'<path d="M{x},{10 + _HEIGHT} L{x},{bottom - 10}" stroke="#9ab"/>'
        f'<rect x="{x - _WIDTH // 2}" y="10" width="{_WIDTH}" height="{_HEIGHT}" '
        'rx="6" fill="#eef4fb" stroke="#246"/>'
        f'<text x="{x}" y="{14 + _HEIGHT // 2}" text-anchor="middle" '
        f'font-weight="bold">{escape(name)}</text>'
    )


def _draw_message(start: int, end: int, y: int, text: str, dashes: str) -> str:
    if start == end:
        path = f'M{start},{y - 8} h24 v12 h-22'
        label = f'<text x="{start + 30}" y="{y}" {_HALO}>{text}</text>'
    else:
        path = f'M{start},{y} L{end},{y}'
        middle = (start + end) // 2
        label = (
            f'<text x="{middle}" y="{y - 5}" text-anchor="middle" {_HALO}>{text}</text>'
        )
    return (
        f'<path d="{path}" fill="none" stroke="#246" marker-end="url(#end)"{dashes}/>'
        f'{label}'
    )
