# SPDX-License-Identifier: Apache-2.0
"""Draws the states of an ARQ, from the table of transitions, as SVG."""

from collections import defaultdict
from collections.abc import Mapping
from math import hypot
from typing import Final
from xml.sax.saxutils import escape

from cyborg_lite.model.arqs import Event, State

Transitions = Mapping[State, Mapping[Event, State]]

# The centre of each state. A state without a position fails the build.
POSITIONS: Final = {
    State.INITIAL: (80, 40),
    State.BIND_STARTED: (330, 40),
    State.BOUND: (580, 40),
    State.PROVISIONING: (830, 40),
    State.UNBIND_FAILED: (160, 370),
    State.UNBOUND: (160, 225),
    State.BIND_FAILED: (760, 225),
    State.DELETING: (500, 370),
}
_WIDTH, _HEIGHT = 130, 48
_BEND: Final = 22  # pixels from an arrow to the straight line

_HEAD: Final = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 910 410" role="img"
 aria-label="States of an ARQ" font-family="sans-serif" font-size="12">
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
    boxes = [_box(state, ', '.join(events)) for state, events in stays.items()]
    return '\n'.join([_HEAD, *curves, *boxes, '</svg>'])


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


def _arrow(start: State, end: State, events: str) -> str:
    """Return a curve to the right of the straight line, with the events as label."""
    (x1, y1), (x2, y2) = POSITIONS[start], POSITIONS[end]
    length = hypot(x2 - x1, y2 - y1)
    aside_x, aside_y = (y1 - y2) / length * _BEND, (x2 - x1) / length * _BEND
    middle = (x1 + x2) / 2 + aside_x, (y1 + y2) / 2 + aside_y
    from_x, from_y = _edge(POSITIONS[start], middle)
    to_x, to_y = _edge(POSITIONS[end], middle)
    return (
        f'<path d="M{from_x:.0f},{from_y:.0f} Q{middle[0]:.0f},{middle[1]:.0f} '
        f'{to_x:.0f},{to_y:.0f}" fill="none" stroke="#246" marker-end="url(#tip)">'
        f'<title>{start}: {events}: {end}</title></path>'
        f'<text x="{middle[0]:.0f}" y="{middle[1]:.0f}" text-anchor="middle" '
        'stroke="#fff" stroke-width="3" paint-order="stroke">'
        f'{escape(events)}</text>'
    )


def _edge(
    centre: tuple[float, float], towards: tuple[float, float]
) -> tuple[float, float]:
    """Return the point where the line from the centre of a box crosses its edge."""
    x, y = towards[0] - centre[0], towards[1] - centre[1]
    scale = min(
        _WIDTH / 2 / abs(x) if x else float('inf'),
        _HEIGHT / 2 / abs(y) if y else float('inf'),
    )
    return centre[0] + x * scale, centre[1] + y * scale
