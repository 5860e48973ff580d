# SPDX-License-Identifier: Apache-2.0
"""Tests of the topology as an SVG picture."""

import re
from itertools import combinations
from xml.etree import ElementTree

import pytest

from cyborg_lite.model.hosts.topology import Availability, HostTopology
from cyborg_lite.rendering.svg import format_svg, list_unit_rows
from tests.builders.host_topologies import (
    PROJECT,
    USER,
    build_shared_topology,
    build_topology,
    build_unit,
)

_SVG = '{http://www.w3.org/2000/svg}'
_KINDS = ('host', 'numa', 'bridge', 'device', 'deployable')


def read_boxes(root: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """Return left, top, right and bottom of each box."""
    boxes = []
    for group in root.iter(f'{_SVG}g'):
        if group.get('class') in _KINDS:
            x, y = map(float, re.findall(r'[\d.]+', group.get('transform', '')))
            frame = next(group.iter(f'{_SVG}rect'))
            width, height = float(frame.get('width', 0)), float(frame.get('height', 0))
            boxes.append((x, y, x + width, y + height))
    return boxes


@pytest.mark.parametrize(
    ('topology', 'count'), [(build_topology(30), 7), (build_shared_topology(), 14)]
)
def test_svg_boxes_lie_apart_inside_picture(topology: HostTopology, count: int) -> None:
    root = ElementTree.fromstring(format_svg(topology))
    boxes = read_boxes(root)
    assert len(boxes) == count
    width, height = float(root.get('width', 0)), float(root.get('height', 0))
    for x1, y1, x2, y2 in boxes:
        assert 0 <= x1 < x2 <= width
        assert 0 <= y1 < y2 <= height
    for first, second in combinations(boxes, 2):
        is_apart = (
            first[2] <= second[0]
            or second[2] <= first[0]
            or first[3] <= second[1]
            or second[3] <= first[1]
        )
        assert is_apart, (first, second)


def test_svg_escapes_text() -> None:
    text = format_svg(build_topology())
    assert '<script' not in text
    root = ElementTree.fromstring(text)
    titles = [element.text or '' for element in root.iter(f'{_SVG}text')]
    assert any('<script>alert("&\ufffd[31m")</script>' in title for title in titles)


def test_svg_host_without_devices_has_one_box() -> None:
    root = ElementTree.fromstring(format_svg(HostTopology('compute-2', 'down')))
    assert len(read_boxes(root)) == 1


def test_svg_is_equal_for_equal_topology() -> None:
    assert format_svg(build_topology(5)) == format_svg(build_topology(5))


def test_unit_rows_many_units_end_with_summary() -> None:
    units = [build_unit(str(number), Availability.FREE) for number in range(40)]
    rows = list_unit_rows(units)
    assert len(rows) == 16
    assert rows[-1].text == 'and 25 units: 25 free'
    assert rows[-1].availability is None
    assert len(list_unit_rows(units[:16])) == 16
    assert list_unit_rows(units[:16])[-1].availability is Availability.FREE


def test_unit_row_shortens_ids_of_user() -> None:
    (row,) = list_unit_rows([build_unit('a', Availability.USED, user=USER)])
    assert f'project {PROJECT[:8]}' in row.text
    assert PROJECT not in row.text
    assert PROJECT in row.full_text
