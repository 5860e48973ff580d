# SPDX-License-Identifier: Apache-2.0
"""Topology of a host as an SVG picture for a document.

The layout is the layered one of Sugiyama, from left to right, by grandalf: the library
is pure Python and respects the size of each box. The binaries of Graphviz are not
required. All text passes through ElementTree, which escapes it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree

from grandalf.graphs import Edge, Graph, Vertex
from grandalf.layouts import SugiyamaLayout, VertexViewer

from cyborg_lite.model.hosts.topology import (
    Availability,
    HostTopology,
    TopologyUnit,
    count_units,
)
from cyborg_lite.rendering.outline import (
    Box,
    BoxKind,
    Tone,
    build_outline,
    describe_counts,
    describe_unit,
)

_MAX_ROWS: Final = 16  # more would make the picture of a document illegible
_UUID_HEAD: Final = 8  # characters of a uuid that identify it in a picture


@dataclass(frozen=True, slots=True)
class UnitRow:
    """A line of a box, with a mark for the availability of the unit."""

    text: str
    full_text: str  # shown when the pointer rests on the row
    availability: Availability | None  # None: the row stands for several units


def list_unit_rows(units: Sequence[TopologyUnit]) -> tuple[UnitRow, ...]:
    """Return one row per unit; the last row may stand for several."""
    limit = _MAX_ROWS if len(units) <= _MAX_ROWS else _MAX_ROWS - 1
    rows = [_build_row(unit) for unit in units[:limit]]
    if len(units) > limit:
        text = f'and {describe_counts(count_units(units[limit:]))}'
        rows.append(UnitRow(text, text, None))
    return tuple(rows)


def _build_row(unit: TopologyUnit) -> UnitRow:
    user = unit.user
    words = [unit.name]
    if user is not None:
        words.append(user.device_profile_name)
        if user.instance_uuid:
            words.append(f'instance {user.instance_uuid[:_UUID_HEAD]}')
        if user.project_id:
            words.append(f'project {user.project_id[:_UUID_HEAD]}')
    elif unit.reason:
        words.append(unit.reason)
    full = unit.name, unit.type, str(unit.availability), describe_unit(unit)
    return UnitRow('  '.join(words), ', '.join(filter(None, full)), unit.availability)


# Pixels. The widths of characters are those of a wide font, so that no text is cut.
_LINE: Final = 17
_PADDING: Final = 10
_BOLD: Final = 1.14
_WIDE: Final = 8.2  # of a capital, m or w
_NARROW: Final = 6.9
_THIN: Final = 4.0
_THIN_CHARS: Final = frozenset(' .,:;/|()ijl')
_MARK: Final = 16
_MARGIN: Final = 20
_COLUMN_GAP: Final = 46
_ROW_GAP: Final = 14
_LEGEND: Final = 34
_LEGEND_STEP: Final = 92
_MIN_WIDTH: Final = 2 * _MARGIN + _LEGEND_STEP * len(Availability)
_MAX_TEXT: Final = 72  # characters

_FILLS: Final = {Tone.GOOD: '#f5f8fb', Tone.WARNING: '#fff3d6', Tone.BAD: '#fde3e1'}
_STROKES: Final = {Tone.GOOD: '#51687d', Tone.WARNING: '#b06d00', Tone.BAD: '#b3261e'}
_STRIPES: Final = {
    BoxKind.HOST: '#243b53',
    BoxKind.NUMA: '#627d98',
    BoxKind.BRIDGE: '#2f7f7b',
    BoxKind.DEVICE: '#1769aa',
    BoxKind.DEPLOYABLE: '#7a5195',
}
# Distinguishable without colour: each mark also has a shape of its own.
_MARKS: Final = {
    Availability.FREE: '#2e7d32',
    Availability.USED: '#1769aa',
    Availability.DIRTY: '#7b5a00',
    Availability.ALLOCATED: '#6a3fa0',
    Availability.RESERVED: '#b06d00',
    Availability.HOST_DOWN: '#5f6368',
    Availability.BROKEN: '#b3261e',
}
_FONT: Final = 'DejaVu Sans, Verdana, sans-serif'


@dataclass(slots=True)
class _Drawing:
    """A box with its size and position in pixels."""

    box: Box
    rows: tuple[UnitRow, ...]
    width: float
    height: float
    x: float = 0
    y: float = 0


def format_svg(topology: HostTopology) -> str:
    """Return the picture as an SVG document."""
    element = build_svg(topology)
    return ElementTree.tostring(element, encoding='unicode')


def build_svg(topology: HostTopology) -> ElementTree.Element:
    """Return the element ``svg`` of the picture."""
    levels = _arrange(build_outline(topology))
    drawings = [drawing for level in levels for drawing in level]
    width = max(item.x + item.width for item in drawings) + _MARGIN
    width = max(width, _MIN_WIDTH)
    height = max(item.y + item.height for item in drawings) + _MARGIN + _LEGEND
    size = {'width': f'{width:.0f}', 'height': f'{height:.0f}'}
    root = ElementTree.Element(
        'svg',
        {
            'xmlns': 'http://www.w3.org/2000/svg',
            **size,
            'viewBox': f'0 0 {width:.0f} {height:.0f}',
            'font-family': _FONT,
            'font-size': '11',
            'role': 'img',
        },
    )
    _add(root, 'title', text=f'Topology of host {topology.hostname}')
    _add(root, 'rect', fill='#ffffff', **size)
    by_box = {id(drawing.box): drawing for drawing in drawings}
    for drawing in drawings:
        for child in drawing.box.children:
            _draw_edge(root, drawing, by_box[id(child)])
    for drawing in drawings:
        _draw_box(root, drawing)
    _draw_legend(root, height - _LEGEND)
    return root


def _arrange(root: Box) -> list[list[_Drawing]]:
    """Return the boxes with their positions, one list per level."""
    drawings = {id(box): _measure(box) for box in root.walk()}
    vertices = {key: Vertex(drawing) for key, drawing in drawings.items()}
    for key, vertex in vertices.items():
        # The layout goes from top to bottom, so both axes are exchanged.
        vertex.view = VertexViewer(drawings[key].height, drawings[key].width)
    edges = [
        Edge(vertices[id(box)], vertices[id(child)])
        for box in root.walk()
        for child in box.children
    ]
    graph = Graph(list(vertices.values()), edges).C[0]
    layout = SugiyamaLayout(graph)
    layout.xspace, layout.yspace = _ROW_GAP, _COLUMN_GAP
    layout.init_all(roots=[vertices[id(root)]])
    layout.draw()
    levels = [
        [vertex.data for vertex in layer if isinstance(vertex, Vertex)]
        for layer in layout.layers
    ]
    _place(levels, {id(v.data): v.view.xy[0] for v in vertices.values()})
    return levels


def _place(levels: Sequence[Sequence[_Drawing]], centers: Mapping[int, float]) -> None:
    """Set the positions: a column per level, the vertical centers of the layout."""
    top = min(centers[id(item)] - item.height / 2 for level in levels for item in level)
    x: float = _MARGIN
    for level in levels:
        for item in level:
            item.x = x
            item.y = centers[id(item)] - item.height / 2 - top + _MARGIN
        x += max(item.width for item in level) + _COLUMN_GAP


def _measure(box: Box) -> _Drawing:
    rows = list_unit_rows(box.units)
    widths = [_measure_text(box.title) * _BOLD]
    widths += map(_measure_text, box.lines)
    widths += [_measure_text(row.text) + _MARK for row in rows]
    count = 1 + len(box.lines) + len(rows)
    height = count * _LINE + 2 * _PADDING - 4 + (6 if rows else 0)
    return _Drawing(box, rows, max(widths) + 2 * _PADDING + 4, height)


def _measure_text(text: str) -> float:
    return sum(map(_measure_char, _cut(text)))


def _measure_char(char: str) -> float:
    if char in _THIN_CHARS:
        return _THIN
    is_narrow = char.isascii() and not char.isupper() and char not in 'mw_%'
    return _NARROW if is_narrow else _WIDE


def _draw_edge(root: ElementTree.Element, start: _Drawing, end: _Drawing) -> None:
    x1, y1 = start.x + start.width, start.y + start.height / 2
    x2, y2 = end.x, end.y + end.height / 2
    middle = (x1 + x2) / 2
    path = f'M{x1:.1f} {y1:.1f}C{middle:.1f} {y1:.1f} {middle:.1f} {y2:.1f}'
    stroke = {'stroke': '#8795a1', 'stroke-width': '1.4'}
    _add(root, 'path', d=f'{path} {x2:.1f} {y2:.1f}', fill='none', **stroke)


def _draw_box(root: ElementTree.Element, item: _Drawing) -> None:
    box = item.box
    group = _add(root, 'g', transform=f'translate({item.x:.1f} {item.y:.1f})')
    group.set('class', box.kind)
    size = {'width': f'{item.width:.1f}', 'height': f'{item.height:.1f}'}
    colors = {'fill': _FILLS[box.tone], 'stroke': _STROKES[box.tone]}
    _add(group, 'rect', rx='5', **size, **colors)
    stripe = {'width': '4', 'height': size['height'], 'fill': _STRIPES[box.kind]}
    _add(group, 'rect', **stripe)
    y = _PADDING + 10
    _draw_text(group, _PADDING + 4, y, box.title, **{'font-weight': 'bold'})
    for line in box.lines:
        y += _LINE
        _draw_text(group, _PADDING + 4, y, line, fill='#33475b')
    y += 6
    for row in item.rows:
        y += _LINE
        _draw_row(group, y, row)


def _draw_row(group: ElementTree.Element, y: float, row: UnitRow) -> None:
    line = _add(group, 'g')
    _add(line, 'title', text=row.full_text)
    if row.availability is not None:
        _draw_mark(line, _PADDING + 9, y - 4, row.availability)
    _draw_text(line, _PADDING + 4 + _MARK, y, row.text)


def _draw_mark(
    group: ElementTree.Element, x: float, y: float, availability: Availability
) -> None:
    """Draw a ring, a disc, a square or a cross."""
    color = _MARKS[availability]
    ring = {'cx': f'{x:.1f}', 'cy': f'{y:.1f}', 'r': '4'}
    line = {'stroke': color, 'stroke-width': '2'}
    match availability:
        case Availability.FREE:
            _add(group, 'circle', fill='none', **ring, **line)
        case Availability.USED | Availability.ALLOCATED:
            _add(group, 'circle', fill=color, **ring, **line)
        case Availability.RESERVED | Availability.DIRTY:
            corner = {'x': f'{x - 4:.1f}', 'y': f'{y - 4:.1f}'}
            _add(group, 'rect', width='8', height='8', fill=color, **corner)
        case Availability.BROKEN | Availability.HOST_DOWN:
            cross = f'M{x - 4:.1f} {y - 4:.1f}l8 8M{x + 4:.1f} {y - 4:.1f}l-8 8'
            _add(group, 'path', d=cross, fill='none', **line)


def _draw_legend(root: ElementTree.Element, top: float) -> None:
    group = _add(root, 'g', transform=f'translate({_MARGIN} {top + 12:.1f})')
    group.set('class', 'legend')
    for number, availability in enumerate(Availability):
        x = number * _LEGEND_STEP
        _draw_mark(group, x + 5, -4, availability)
        _draw_text(group, x + _MARK, 0, availability)


def _draw_text(
    group: ElementTree.Element, x: float, y: float, text: str, **attributes: str
) -> None:
    short_text = _cut(text)
    position = {'x': f'{x:.1f}', 'y': f'{y:.1f}'}
    element = _add(group, 'text', text=short_text, **position, **attributes)
    if short_text != text:
        _add(element, 'title', text=text)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else f'{text[: _MAX_TEXT - 1]}…'


def _add(
    parent: ElementTree.Element, tag: str, *, text: str = '', **attributes: str
) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, tag, attributes)
    # XML 1.0 has no control characters, not even as references.
    element.text = ''.join(char if char.isprintable() else '\ufffd' for char in text)
    return element
