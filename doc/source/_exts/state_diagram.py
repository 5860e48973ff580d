# SPDX-License-Identifier: Apache-2.0
"""Draws the states of an ARQ, from the table of transitions, as SVG."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import hypot
from typing import Final
from xml.sax.saxutils import escape

from cyborg_lite.model.arqs.arqs import Event, State

Point = tuple[float, float]
Transitions = Mapping[State, Mapping[Event, State]]

# The centre of each state. A state without a position fails the build.
POSITIONS: Final = {
    State.INITIAL: (85, 40),
    State.BIND_STARTED: (335, 40),
    State.BOUND: (585, 40),
    State.PROVISIONING: (835, 40),
    State.UNBOUND: (210, 230),
    State.BIND_FAILED: (760, 230),
    State.UNBIND_FAILED: (210, 410),
    State.DELETING: (510, 410),
}
_WIDTH, _HEIGHT = 160, 48
_BEND: Final = 22  # pixels from an arrow to the straight line
_LABEL_AT: Final = 0.36  # arrows diverge at their start, so labels are there
_LABEL_GAP: Final = 6  # pixels from an arrow to its label

# Nearly every state has it, so its arrows have a style and no label.
_COMMON_EVENT: Final = Event.DELETE
_STYLE: Final = 'stroke="#246"'
_COMMON_STYLE: Final = 'stroke="#999" stroke-dasharray="5 4"'

_HEAD: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 920 445" role="img"
 aria-label="States of an ARQ" font-family="sans-serif" font-size="14">
<defs><marker id="tip" markerWidth="9" markerHeight="8" refX="8" refY="4" orient="auto">
<path d="M0,0 L9,4 L0,8 z"/></marker></defs>"""


def svg(transitions: Transitions) -> str:
    """Return the picture of all states and transitions.

    :raises KeyError: if a state has no position
    """
    arrows: dict[tuple[State, State], list[str]] = defaultdict(list)
    for state, row in transitions.items():
        for event, following in row.items():
            arrows[state, following].append(event)
    stays = {state: arrows.pop((state, state), []) for state in transitions}
    curves = [_arrow(*ends, ', '.join(events)) for ends, events in arrows.items()]
    paths, labels = zip(*curves, strict=True)
    boxes = [_box(state, ', '.join(events)) for state, events in stays.items()]
    return '\n'.join([_HEAD, *paths, *labels, *boxes, _legend(), '</svg>'])


def table(transitions: Transitions) -> list[list[str]]:
    """Return a header of events and a row per state; empty cells are not allowed."""
    rows = [
        [state, *(row.get(event, '') for event in Event)]
        for state, row in transitions.items()
    ]
    return [['', *Event], *rows]


def _box(state: State, stays: str) -> str:
    x, y = POSITIONS[state]
    corner_x, corner_y = x - _WIDTH / 2, y - _HEIGHT / 2
    label = f'<text x="{x}" y="{y + 15}" text-anchor="middle" fill="#555">'
    loop = f'{label}&#8635; {escape(stays)}</text>' if stays else ''
    return (
        f'<rect x="{corner_x}" y="{corner_y}" width="{_WIDTH}" height="{_HEIGHT}" '
        'rx="8" fill="#eef4fb" stroke="#246"/>'
        f'<text x="{x}" y="{y - 2}" text-anchor="middle" font-weight="bold">'
        f'{escape(state)}</text>{loop}'
    )


def _legend() -> str:
    x, y = 660, 414
    return (
        f'<path d="M{x},{y - 4} h50" {_COMMON_STYLE} marker-end="url(#tip)"/>'
        f'<text x="{x + 62}" y="{y}">{escape(_COMMON_EVENT)}</text>'
    )


def _arrow(start: State, end: State, events: str) -> tuple[str, str]:
    """Return a curve to the right of the straight line, and its label."""
    (x1, y1), (x2, y2) = POSITIONS[start], POSITIONS[end]
    length = hypot(x2 - x1, y2 - y1)
    aside = (y1 - y2) / length, (x2 - x1) / length
    control = (x1 + x2) / 2 + aside[0] * _BEND, (y1 + y2) / 2 + aside[1] * _BEND
    points = _edge(POSITIONS[start], control), control, _edge(POSITIONS[end], control)
    (from_x, from_y), _, (to_x, to_y) = points
    is_common = events == _COMMON_EVENT
    path = (
        f'<path d="M{from_x:.0f},{from_y:.0f} Q{control[0]:.0f},{control[1]:.0f} '
        f'{to_x:.0f},{to_y:.0f}" fill="none" '
        f'{_COMMON_STYLE if is_common else _STYLE} marker-end="url(#tip)">'
        f'<title>{start}: {events}: {end}</title></path>'
    )
    return path, '' if is_common else _label(points, aside, events)


def _label(points: Sequence[Point], aside: Point, events: str) -> str:
    """Return the text beside a curve, on the outer side of its bend."""
    x, y = (
        (1 - _LABEL_AT) ** 2 * start
        + 2 * _LABEL_AT * (1 - _LABEL_AT) * control
        + _LABEL_AT**2 * end
        for start, control, end in zip(*points, strict=True)
    )
    anchor = 'middle'
    if abs(aside[0]) > abs(aside[1]) / 2:  # the arrow is steep
        anchor = 'start' if aside[0] > 0 else 'end'
    x += aside[0] * _LABEL_GAP
    y += aside[1] * _LABEL_GAP + (8 if aside[1] > 0 else 2)
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" '
        f'stroke="#fff" stroke-width="5" paint-order="stroke">{escape(events)}</text>'
    )


def _edge(centre: Point, towards: Point) -> Point:
    """Return the point where the line from the centre of a box crosses its edge."""
    x, y = towards[0] - centre[0], towards[1] - centre[1]
    scale = min(
        _WIDTH / 2 / abs(x) if x else float('inf'),
        _HEIGHT / 2 / abs(y) if y else float('inf'),
    )
    return centre[0] + x * scale, centre[1] + y * scale
